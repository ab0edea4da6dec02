import type { JSX } from "preact";
import { parseAnsi } from "./ansi.js";

/** A rendering with its terminal colors. */
export function AnsiText({ text }: { readonly text: string }): JSX.Element {
  return (
    <>
      {parseAnsi(text).map(({ text: piece, className }, i) => (
        <span key={i} class={className === "" ? undefined : className}>
          {piece}
        </span>
      ))}
    </>
  );
}
