export { AutoTokenizer } from "./auto-tokenizer.js";
export type { AssistantSpan } from "./assistant-spans.js";
export { type ChatOptions, type RenderOptions, RESERVED_VARIABLES } from "./chat-renderer.js";
export { FALLBACK_CHAT_TEMPLATE } from "./chat-templates.js";
export { Conversation, type ConversationOptions, type ConversationState } from "./conversation.js";
export { ChatTemplate, type RenderedTemplate, type TemplateInput } from "./jinja/chat-template.js";
export { type ChatMessage, type ContentPart, REASONING_FIELDS, type ToolDefinition } from "./chat-messages.js";
export { type RenderedText, sliceRendered } from "./rendered-text.js";
export type { StreamDecoder } from "./stream-decoder.js";
export { supportsSystemRole } from "./supports-system-role.js";
export {
  type DecodeOptions,
  type EncodedChat,
  type EncodeOptions,
  Tokenizer,
  type TokenizerOptions,
} from "./tokenizer.js";
export type { Offset } from "./tokenization/align-tokens.js";
