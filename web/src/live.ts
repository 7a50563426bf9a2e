// `rankscope serve`: asks the server for newer data and draws again when there is some.
import { type PageData } from "./data";

const interval = 2000; // milliseconds

export function follow(redraw: (data: PageData) => void): void {
  let tag = "";
  let came: string | null = document.getElementById("rankscope-data")?.textContent ?? null; // with the page, which may be older than the first answer
  const ask = async (): Promise<void> => {
    try {
      const answer = await fetch(`data.json${location.search}`, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
      if (answer.status === 200) {
        tag = answer.headers.get("ETag") ?? "";
        const text = await answer.text();
        if (text !== came) redraw(JSON.parse(text) as PageData);
        came = null;
      }
    } catch {
      // the server is gone: what is on the page stays
    }
    setTimeout(() => void ask(), interval);
  };
  void ask();
}
