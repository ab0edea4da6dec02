import type { JSX } from "preact";
import { useDashboard } from "../data/context.js";

const PATTERN = /`([^`]+)`|\[([^\]]+)\]\(([\w./#-]+)\)/g;

/** A text of the documentation, with `code` and links to its pages. */
export function DocText({ text }: { readonly text: string }): JSX.Element {
  const { source } = useDashboard();
  const parts: (JSX.Element | string)[] = [];
  let end = 0;
  for (const match of text.matchAll(PATTERN)) {
    const [whole, code, label, target] = match;
    parts.push(text.slice(end, match.index));
    if (code !== undefined) parts.push(<code>{code}</code>);
    else if (source.isReport) parts.push(label);
    else parts.push(<DocLink page={target}>{label}</DocLink>);
    end = match.index + whole.length;
  }
  parts.push(text.slice(end));
  return <>{parts}</>;
}

/** A link to a page of the documentation, which opens in a new tab. */
export function DocLink({ page, children }: { readonly page: string; readonly children: string }): JSX.Element {
  const path = page.replace(/\.md(#.*)?$/, "");
  return (
    <a href={`/docs/${path.split("/").map(encodeURIComponent).join("/")}.md`} target="_blank" rel="noreferrer">
      {children}
    </a>
  );
}
