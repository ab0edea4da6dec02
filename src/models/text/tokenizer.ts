import { checkOptions, type OptionNames } from "../../core/settings.js";
import { concatBytes, decodeUtf8, encodeUtf8 } from "../../core/bytes.js";
import { LlamaGymError } from "../../core/errors.js";
import { type Steps, runSteps } from "../../core/steps.js";
import { type AssistantSpan, findAssistantRanges, toTokenSpans } from "./assistant-spans.js";
import { ChatRenderer, checkRenderOptions, type ChatOptions, type RenderOptions } from "./chat-renderer.js";
import { readChatTemplates } from "./chat-templates.js";
import type { ChatMessage } from "./chat-messages.js";
import { type SpecialTokenRole, readEosTokenIds, readSpecialTokens } from "./special-tokens.js";
import { type RenderedText, sliceRendered } from "./rendered-text.js";
import { StreamDecoder } from "./stream-decoder.js";
import { type Offset, alignTokens } from "./tokenization/align-tokens.js";
import type { AddedToken } from "./tokenization/added-tokens.js";
import {
  type DecodeStageFactory,
  createDecoder,
  decodesByteCharacters,
  partText,
  tokenBytes,
} from "./tokenization/decoder.js";
import {
  type JsonRecord,
  corruptFileError,
  isObject,
  optionalObject,
  requireObject,
} from "./tokenization/tokenizer-json.js";
import { countVisible, maxShrinkFactor } from "./tokenization/min-token-count.js";
import { readVocabulary } from "./tokenization/token-model.js";
import { EncodingPipeline, joinIds, type TextPosition } from "./tokenization/encoding-pipeline.js";
import { type PostProcessor, createPostProcessor, surroundWith } from "./tokenization/post-processor.js";
import type { TokenizerFiles } from "./tokenizer-files.js";
import { writeTokenizerFolder } from "./tokenizer-folder.js";

/** Encoding options. */
export interface EncodeOptions {
  /**
   * Whether to add the beginning and end tokens that the tokenizer's files define. Default true.
   */
  readonly addSpecialTokens?: boolean;
  /**
   * Whether special tokens that are written in the text are encoded as plain text. Default
   * tokenizer_config.json's, else false.
   */
  readonly splitSpecialTokens?: boolean;
}

/** Options of a tokenizer. */
export interface TokenizerOptions {
  /**
   * Whether special tokens that are written in messages, tools, choices and demonstrations are
   * encoded as plain text; those that the chat template writes are special tokens always. Default
   * true.
   */
  readonly splitSpecialTokens?: boolean;
}

/** Decoding options. */
export interface DecodeOptions {
  /** Whether to omit special tokens such as <|im_end|>. Default false. */
  readonly skipSpecialTokens?: boolean;
}

const encodeOptionNames: OptionNames<EncodeOptions> = {
  addSpecialTokens: Boolean,
  splitSpecialTokens: Boolean,
};
const decodeOptionNames: OptionNames<DecodeOptions> = { skipSpecialTokens: Boolean };

/** A conversation as text and token ids. */
export interface EncodedChat {
  readonly text: string;
  readonly ids: number[];
  /** [start, end) token range of each assistant message: its content and end token. */
  readonly assistantSpans: AssistantSpan[];
  /** Index of the message of each span; undefined for text that the template writes by itself. */
  readonly spanMessages: readonly (number | undefined)[];
  /** Indexes of the assistant messages of which the rendered text has no part that can be told. */
  readonly missingAnswers: readonly number[];
  /** 1 for tokens in an assistant span, else 0. */
  readonly assistantMask: Uint8Array;
}

/**
 * Converts text to token ids and back, and conversations to text, equivalent to Python's tokenizers
 * and Transformers. Built from parsed files; `AutoTokenizer` loads it from a folder, a hub id or a
 * GGUF file.
 */
export class Tokenizer {
  /**
   * Number of tokens including added ones. Ids may have gaps, and a model's embedding may have more
   * rows.
   */
  readonly vocabSize: number;
  /** Chat templates by name, the main one under "default"; empty for most base models. */
  readonly chatTemplates: ReadonlyMap<string, string>;
  /** Special tokens by role: bos_token, eos_token, pad_token, unk_token. */
  readonly specialTokens: ReadonlyMap<SpecialTokenRole, string>;
  /** Ids of special tokens in ascending order. */
  readonly specialTokenIds: readonly number[];
  /** End-of-sequence ids: the eos token and generation_config.json's. */
  readonly eosTokenIds: readonly number[];
  /**
   * Whether special tokens that are written in messages, tools, choices and demonstrations are
   * encoded as plain text.
   */
  readonly splitSpecialTokens: boolean;
  /** Tokens that are matched in texts before anything else, of all files. @internal */
  readonly addedTokens: readonly AddedToken[];
  private readonly vocabulary: ReadonlyMap<string, number>;
  private readonly tokens: (string | undefined)[] = [];
  private readonly addedById = new Map<number, AddedToken>();
  private readonly addedIdsByContent = new Map<string, number>();
  private readonly specialIds: ReadonlySet<number>;
  private readonly pipeline: EncodingPipeline;
  private readonly postProcessor: PostProcessor | null;
  private readonly decoder: DecodeStageFactory[];
  /** Whether decoding concatenates the bytes of tokens. */
  private readonly decodesByJoiningBytes: boolean;
  private readonly encodeToken: (token: string) => Uint8Array;
  private readonly bytesById = new Map<number, Uint8Array>();
  private readonly encodePart: (part: string) => string;
  private readonly shrinkFactor: number;
  private readonly stripsWhitespace: boolean;
  private maxTokenLength: number | undefined;
  private readonly specialContents: readonly string[];
  private readonly chatRenderer: ChatRenderer;
  /**
   * tokenizer_config.json's `split_special_tokens`, for texts; the text of a chat template is
   * always read.
   */
  private readonly splitsTexts: boolean;

  /**
   * @param name names the tokenizer in error messages
   * @throws FILE_CORRUPT and TOKENIZER_UNSUPPORTED.
   */
  constructor(
    readonly files: TokenizerFiles,
    readonly name = "(unnamed)",
    { splitSpecialTokens = true }: TokenizerOptions = {},
  ) {
    this.splitSpecialTokens = splitSpecialTokens;
    const json = requireObject(files.tokenizerJson, "tokenizer.json");
    const config = optionalObject(files.tokenizerConfig, "tokenizer_config.json");
    if (!isObject(json.model)) throw corruptFileError('tokenizer.json: there is no "model".');
    this.vocabulary = readVocabulary(json.model);
    const legacy = {
      specialTokensMap: optionalObject(files.specialTokensMap, "special_tokens_map.json"),
      addedTokens: optionalObject(files.addedTokens, "added_tokens.json"),
    };
    const { byRole, added } = readSpecialTokens(json, config, legacy, this.vocabulary);
    this.addedTokens = added;
    this.pipeline = new EncodingPipeline(json, this.vocabulary, added);
    for (const [token, id] of this.vocabulary) this.tokens[id] = token;
    for (const token of added) {
      this.tokens[token.id] = token.content;
      this.addedById.set(token.id, token);
      this.addedIdsByContent.set(token.content, token.id);
    }
    this.shrinkFactor = maxShrinkFactor(json);
    this.stripsWhitespace = added.some((token) => token.lstrip || token.rstrip);
    this.vocabSize = this.vocabulary.size + added.filter((token) => !this.vocabulary.has(token.content)).length;
    this.specialTokens = byRole;
    this.specialIds = new Set(added.filter((token) => token.special).map((token) => token.id));
    this.specialTokenIds = Array.from(this.specialIds).sort((a, b) => a - b);
    this.eosTokenIds = this.collectEosTokenIds(optionalObject(files.generationConfig, "generation_config.json"));
    this.postProcessor = createPostProcessor(json.post_processor) ?? this.createConfiguredPostProcessor(json, config);
    this.decoder = createDecoder(json.decoder);
    this.decodesByJoiningBytes = this.decoder.length === 1 && decodesByteCharacters(json.decoder);
    this.encodeToken = tokenBytes(json.decoder);
    this.encodePart = partText(json.decoder, this.pipeline.normalizePart);
    this.splitsTexts = config.split_special_tokens === true;
    this.chatTemplates = readChatTemplates(config, files.chatTemplate);
    this.specialContents = this.specialTokenIds.map((id) => this.tokens[id] ?? "");
    this.chatRenderer = new ChatRenderer(this.chatTemplates, {
      variables: byRole,
      specialTokens: this.specialContents,
      splitSpecialTokens,
      tokenizerName: name,
    });
  }

  get bosToken(): string | undefined {
    return this.specialTokens.get("bos_token");
  }

  get bosTokenId(): number | undefined {
    return this.getRoleId("bos_token");
  }

  get eosToken(): string | undefined {
    return this.specialTokens.get("eos_token");
  }

  get eosTokenId(): number | undefined {
    return this.getRoleId("eos_token");
  }

  get padToken(): string | undefined {
    return this.specialTokens.get("pad_token");
  }

  get padTokenId(): number | undefined {
    return this.getRoleId("pad_token");
  }

  /**
   * Encodes a text; special tokens written in the text become special tokens, unless
   * `splitSpecialTokens` is set.
   */
  encode(text: string, options?: EncodeOptions): number[] {
    checkOptions("Tokenizer.encode", options, encodeOptionNames);
    return runSteps(this.encodeSteps(text, options));
  }

  /** Encodes as `encode`, in steps; ends early after more than `maxTokens`. */
  *encodeSteps(
    text: string,
    { addSpecialTokens = true, splitSpecialTokens = this.splitsTexts }: EncodeOptions = {},
    maxTokens?: number,
  ): Steps<number[]> {
    const sections = yield* this.pipeline.encode(text, "start", splitSpecialTokens ? "all" : undefined, maxTokens);
    const ids = yield* joinIds(sections);
    return addSpecialTokens && this.postProcessor ? this.postProcessor(ids) : ids;
  }

  /**
   * Encodes a text that continues other tokens: without a beginning token or a leading space.
   * `previousId` is the preceding token. Special tokens in the text are as for `encode`.
   */
  encodeContinuation(
    text: string | RenderedText,
    previousId: number | undefined,
    options?: Pick<EncodeOptions, "splitSpecialTokens">,
  ): number[] {
    return runSteps(this.encodeContinuationSteps(text, previousId, options));
  }

  /** Encodes as `encodeContinuation`, in steps; ends early after more than `maxTokens`. */
  *encodeContinuationSteps(
    text: string | RenderedText,
    previousId: number | undefined,
    { splitSpecialTokens = false }: Pick<EncodeOptions, "splitSpecialTokens"> = {},
    maxTokens?: number,
  ): Steps<number[]> {
    const rendered = typeof text === "string" ? { text, literals: undefined } : text;
    const previous = previousId === undefined ? undefined : this.addedById.get(previousId);
    const position: TextPosition = previousId === undefined ? "start" : previous ? "after-token" : "continuation";
    const stripped = previous?.rstrip ? (/^\p{White_Space}+/u.exec(rendered.text)?.[0].length ?? 0) : 0;
    const rest = stripped === 0 ? rendered : sliceRendered(rendered, stripped);
    const literals = splitSpecialTokens ? "all" : rest.literals;
    return yield* joinIds(yield* this.pipeline.encode(rest.text, position, literals, maxTokens));
  }

  /**
   * Returns a lower bound of a text's number of tokens without encoding it, from the longest token;
   * 0 for a tokenizer that drops text.
   */
  minTokenCount(text: string): number {
    this.maxTokenLength ??= this.tokens.reduce((max, _, id) => Math.max(max, this.tokenBytes(id).length), 1);
    if (!Number.isFinite(this.shrinkFactor)) return 0;
    // Added tokens may take in any amount of whitespace. UTF-8 has at least as many bytes as UTF-16
    // has units.
    const length = this.stripsWhitespace ? countVisible(text) : text.length;
    return Math.ceil(length / this.shrinkFactor / this.maxTokenLength);
  }

  /** Encodes a text without added special tokens, with each token's position in UTF-16 units. */
  encodeWithOffsets(text: string | RenderedText): { ids: number[]; offsets: Offset[] } {
    const rendered = typeof text === "string" ? { text, literals: undefined } : text;
    const ids: number[] = [];
    const offsets: Offset[] = [];
    for (const section of runSteps(this.pipeline.encode(rendered.text, "start", rendered.literals))) {
      for (const id of section.ids) ids.push(id);
      if (section.token) {
        offsets.push([section.start, section.end]);
        continue;
      }
      const pieces = section.ids.map((id) => this.tokenBytes(id));
      for (const [start, end] of alignTokens(section.text, pieces, this.encodePart))
        offsets.push([section.start + start, section.start + end]);
    }
    return { ids, offsets };
  }

  /** Decodes token ids. Invalid UTF-8 becomes U+FFFD; ids outside the vocabulary are omitted. */
  decode(ids: Iterable<number>, options: DecodeOptions = {}): string {
    checkOptions("Tokenizer.decode", options, decodeOptionNames);
    if (this.decodesByJoiningBytes) {
      const decodedIds = Array.from(ids).filter((id) => this.shouldDecode(id, options));
      const pieces = decodedIds.map((id) =>
        this.addedById.has(id) ? this.encodeToken(this.tokens[id] ?? "") : this.tokenBytes(id),
      );
      return decodeUtf8(concatBytes(pieces));
    }
    const stream = this.createStreamDecoder(options);
    let text = "";
    for (const id of ids) text += stream.push(id);
    return text + stream.end();
  }

  /** Decodes ids in the middle of a sequence, keeping a leading space. */
  decodeContinuation(ids: readonly number[]): string {
    return decodeUtf8(concatBytes(ids.map((id) => this.tokenBytes(id))));
  }

  /** Creates an incremental decoder, whose total output equals `decode` of all ids. */
  createStreamDecoder(options: DecodeOptions = {}): StreamDecoder {
    return new StreamDecoder(
      this.decoder.map((make) => make()),
      (id) => (this.shouldDecode(id, options) ? this.tokens[id] : undefined),
    );
  }

  tokenToId(token: string): number | undefined {
    return this.addedIdsByContent.get(token) ?? this.vocabulary.get(token);
  }

  idToToken(id: number): string | undefined {
    return this.tokens[id];
  }

  /** Whether a token is special: an end or role marker. */
  isSpecial(id: number): boolean {
    return this.specialIds.has(id);
  }

  /**
   * Returns the bytes of a token in the middle of a text; empty for an unknown id. Concatenated
   * bytes of a sequence are its text, which constrained decoding relies on.
   */
  tokenBytes(id: number): Uint8Array {
    let bytes = this.bytesById.get(id);
    if (!bytes) {
      const token = this.tokens[id];
      bytes =
        token === undefined ? new Uint8Array() : this.addedById.has(id) ? encodeUtf8(token) : this.encodeToken(token);
      this.bytesById.set(id, bytes);
    }
    return bytes;
  }

  /**
   * Renders a conversation with the tokenizer's chat template. @throws TEMPLATE_FAILED when there
   * is no template or message, or the template rejects the messages.
   */
  applyChatTemplate(messages: readonly ChatMessage[], options: RenderOptions = {}): string {
    return this.renderChat(messages, options).text;
  }

  /**
   * Renders a conversation as `applyChatTemplate`, for `encodeContinuation`. @throws as
   * `applyChatTemplate`.
   */
  renderChat(messages: readonly ChatMessage[], options: RenderOptions = {}): RenderedText {
    checkRenderOptions(options);
    return this.chatRenderer.render(messages, options);
  }

  /** Renders as `renderChat`, in steps. */
  renderChatSteps(messages: readonly ChatMessage[], options: RenderOptions = {}): Steps<RenderedText> {
    return this.chatRenderer.renderSteps(messages, options);
  }

  /** Returns the text of the chat template that is used. @throws TEMPLATE_FAILED without one. */
  getChatTemplate(options: ChatOptions = {}): string {
    return this.chatRenderer.getSource(options);
  }

  /** Whether the chat template marks what the assistant generates, with {% generation %}. */
  marksGeneration(options: ChatOptions = {}): boolean {
    return this.chatRenderer.marksGeneration(options);
  }

  /**
   * Renders what follows the content of a message; undefined if it is not printed once. @throws as
   * `applyChatTemplate`.
   */
  renderAfter(messages: readonly ChatMessage[], index: number, options: RenderOptions = {}): RenderedText | undefined {
    return this.chatRenderer.renderAfter(messages, index, options);
  }

  /**
   * Returns messages in the forms that the chat template prints: arguments of tool calls, which
   * OpenAI's API and many files have as JSON text, mostly as an object, and content as text or as a
   * list of parts. `applyChatTemplate` leaves messages as they are, as in Transformers.
   */
  prepareMessages(messages: readonly ChatMessage[], options: ChatOptions = {}): readonly ChatMessage[] {
    return this.chatRenderer.prepareMessages(messages, options);
  }

  /**
   * Renders and encodes a conversation and locates the assistant's tokens. @throws as
   * `applyChatTemplate`.
   */
  encodeChat(messages: readonly ChatMessage[], options: RenderOptions = {}): EncodedChat {
    checkRenderOptions(options);
    const found = findAssistantRanges(this.chatRenderer, messages, options, this.specialContents);
    const { ids, offsets } = this.encodeWithOffsets(found.rendered);
    const spans = toTokenSpans(found.ranges, offsets);
    const isFilled = (_: unknown, i: number) => spans[i][1] > spans[i][0];
    const assistantSpans = spans.filter(isFilled);
    const assistantMask = new Uint8Array(ids.length);
    for (const [start, end] of assistantSpans) assistantMask.fill(1, start, end);
    return {
      text: found.rendered.text,
      ids,
      assistantSpans,
      spanMessages: found.messages.filter(isFilled),
      missingAnswers: found.missing,
      assistantMask,
    };
  }

  /**
   * Saves the tokenizer's files for Python's AutoTokenizer: tokenizer.json, tokenizer_config.json
   * and, if present, special_tokens_map.json, added_tokens.json and chat_template.jinja. Returns
   * their names.
   * @throws FILE_WRITE_FAILED.
   */
  async save(folder: string): Promise<string[]> {
    return writeTokenizerFolder(this.files, folder);
  }

  private shouldDecode(id: number, { skipSpecialTokens = false }: DecodeOptions): boolean {
    if (!Number.isSafeInteger(id) || id < 0)
      throw new LlamaGymError("INVALID_ARGUMENT", `Token ids must be integers >= 0, got ${id}.`);
    return !(skipSpecialTokens && this.specialIds.has(id));
  }

  private getRoleId(role: SpecialTokenRole): number | undefined {
    const content = this.specialTokens.get(role);
    return content === undefined ? undefined : this.tokenToId(content);
  }

  private collectEosTokenIds(generationConfig: JsonRecord): number[] {
    const eos = this.eosTokenId;
    const ids = eos === undefined ? [] : [eos];
    for (const id of readEosTokenIds(generationConfig)) if (!ids.includes(id)) ids.push(id);
    return ids;
  }

  /** Without a post-processor, tokenizer_config.json may still require a beginning or end token. */
  private createConfiguredPostProcessor(json: JsonRecord, config: JsonRecord): PostProcessor | null {
    if (json.post_processor !== null && json.post_processor !== undefined) return null;
    return surroundWith(
      config.add_bos_token === true ? this.bosTokenId : undefined,
      config.add_eos_token === true ? this.eosTokenId : undefined,
    );
  }
}
