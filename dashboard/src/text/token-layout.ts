import type { EpisodeDetail } from "../../../src/app/dashboard/api.js";
import { stripControls } from "./ansi.js";

/**
 * A line of the list of tokens: the head of a turn, or tokens `start` to `end` of its prompt or
 * completion.
 */
export interface TokenRow {
  readonly kind: "head" | "prompt" | "completion";
  readonly turn: number;
  readonly start: number;
  readonly end: number;
}

/** Texts of tokens as they are shown, by id. */
export type TokenTexts = (token: number) => string;

/**
 * Returns the text that is shown for each token: line breaks and tabs as signs, control codes as
 * nothing.
 */
export function createTokenTexts({ vocabulary: { texts } }: EpisodeDetail): TokenTexts {
  const shown = new Map<number, string>();
  return (token) => {
    let text = shown.get(token);
    if (text === undefined) {
      text = stripControls(texts[token] ?? "")
        .replaceAll("\n", "↵")
        .replaceAll("\t", "⇥");
      if (text === "") text = texts[token] === undefined ? `#${token}` : "␣";
      shown.set(token, text);
    }
    return text;
  };
}

interface LayoutOptions {
  readonly columns: number;
  readonly showPrompt: boolean;
  readonly showSpecial: boolean;
}

/**
 * Breaks an episode into lines of at most `columns` characters; a line break in a token ends its
 * line, as does a hidden special token, which is between two messages of a prompt.
 */
export function layoutTokens(detail: EpisodeDetail, texts: TokenTexts, options: LayoutOptions): TokenRow[] {
  const special = new Set(options.showSpecial ? [] : detail.vocabulary.special);
  const rows: TokenRow[] = [];
  const addLines = (kind: TokenRow["kind"], turn: number, tokens: readonly number[]): void => {
    let start = 0;
    let width = 0;
    for (let i = 0; i < tokens.length; i++) {
      const isHidden = kind === "prompt" && special.has(tokens[i]);
      const text = isHidden ? "" : texts(tokens[i]);
      if (width > 0 && width + text.length > options.columns) {
        rows.push({ kind, turn, start, end: i });
        start = i;
        width = 0;
      }
      width += text.length;
      if (text.endsWith("↵") || (isHidden && width > 0)) {
        rows.push({ kind, turn, start, end: i + 1 });
        start = i + 1;
        width = 0;
      }
    }
    if (start < tokens.length) rows.push({ kind, turn, start, end: tokens.length });
  };
  detail.turns.forEach(({ prompt, tokens }, turn) => {
    rows.push({ kind: "head", turn, start: 0, end: 0 });
    if (options.showPrompt) addLines("prompt", turn, prompt);
    addLines("completion", turn, tokens);
  });
  return rows;
}
