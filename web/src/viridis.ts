// The colour map of the maps of heads, for pixels: its anchor colours, joined linearly.
const anchors: [number, number, number][] = [
  [68, 1, 84],
  [71, 44, 122],
  [59, 81, 139],
  [44, 113, 142],
  [33, 144, 141],
  [39, 173, 129],
  [92, 200, 99],
  [170, 220, 50],
  [253, 231, 37],
];

export function viridis(share: number): [number, number, number] {
  const at = Math.max(0, Math.min(1, share)) * (anchors.length - 1);
  const i = Math.min(anchors.length - 2, Math.floor(at));
  const a = anchors[i] ?? [0, 0, 0];
  const b = anchors[i + 1] ?? a;
  const mix = (k: 0 | 1 | 2): number => Math.round(a[k] + (b[k] - a[k]) * (at - i));
  return [mix(0), mix(1), mix(2)];
}
