// `rankscope serve`: asks the server for newer data and draws again when there is some.
import { type PageData } from "./data";

const interval = 2000; // milliseconds

export function follow(redraw: (data: PageData) => void): void {
  let tag = "";
  const ask = async (): Promise<void> => {
    try {
      const answer = await fetch(`data.json${location.search}`, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
      if (answer.status === 200) {
        const fresh = tag !== "";
        tag = answer.headers.get("ETag") ?? "";
        const data = (await answer.json()) as PageData;
        if (fresh) redraw(data);
      }
    } catch {
      // the server is gone: what is on the page stays
    }
    setTimeout(() => void ask(), interval);
  };
  void ask();
}
