import { LlamaGymError } from "../../core/errors.js";
import { jsonEntries } from "../../core/lossless-json.js";

/** A part of a multi-part message. */
export interface ContentPart {
  readonly type: string;
  readonly text?: string;
  readonly [key: string]: unknown;
}

/** A message in the form that chat templates read. */
export interface ChatMessage {
  /** Usually "system", "user", "assistant" or "tool"; templates decide which roles they accept. */
  readonly role: string;
  readonly content?: string | readonly ContentPart[] | null;
  /** tool_calls, name, reasoning_content and other template-specific fields. */
  readonly [key: string]: unknown;
}

/** A callable function as a JSON schema, in the form that chat templates read. */
export type ToolDefinition = Readonly<Record<string, unknown>>;

/** Names of a message's reasoning. */
export const REASONING_FIELDS: readonly string[] = ["reasoning_content", "thinking", "reasoning"];

/**
 * Prepares messages as Transformers does: without null members, with reasoning text under each of
 * its common names. @throws INVALID_ARGUMENT for anything but a list of messages.
 */
export function toTemplateMessages(messages: readonly ChatMessage[]): Record<string, unknown>[] {
  if (!Array.isArray(messages))
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `Messages must be a list of { role, content }, got ${typeof messages}.`,
    );
  return messages.map((message: ChatMessage, index) => {
    if (typeof message !== "object" || message === null || typeof message.role !== "string")
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        `Message ${index} is ${JSON.stringify(message)}. A message is an object with a role, such as { role: "user", content: "Hello" }.`,
      );
    const fields = Object.fromEntries(
      jsonEntries(message).filter(([, value]) => value !== null && value !== undefined),
    );
    const reasoning = REASONING_FIELDS.map((field) => fields[field]).find((value) => value !== undefined);
    return reasoning === undefined ? fields : { thinking: reasoning, ...fields, reasoning_content: reasoning };
  });
}
