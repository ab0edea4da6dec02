import type { ChatMessage } from "../../../src/models/text/index.js";

/** A question and its answer; `skill` says what it takes to answer it. */
export interface Exchange {
  readonly skill: string;
  readonly user: string;
  readonly assistant: string;
}

/** What the model learns from: questions in one conversation, often about one observation. */
export interface Conversation {
  readonly system?: string;
  readonly exchanges: readonly Exchange[];
}

/** The conversation as messages, up to and with the given exchange. */
export function toMessages({ system, exchanges }: Conversation, count = exchanges.length): ChatMessage[] {
  const turns = exchanges.slice(0, count).flatMap(({ user, assistant }) => [
    { role: "user", content: user },
    { role: "assistant", content: assistant },
  ]);
  return system === undefined ? turns : [{ role: "system", content: system }, ...turns];
}

/** "a, b and c", "a, b or c". */
export function formatList(items: readonly string[], last: "and" | "or"): string {
  return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} ${last} ${items.at(-1)!}`;
}
