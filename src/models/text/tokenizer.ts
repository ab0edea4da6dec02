import { LlamaGymError } from "../../core/errors.js";
import { type AssistantSpan, findAssistantRanges, toTokenSpans } from "./assistant-spans.js";
import { ChatRenderer, type RenderOptions } from "./chat-renderer.js";
import { readChatTemplates } from "./chat-templates.js";
import type { ChatMessage } from "./chat-messages.js";
import { type SpecialTokenRole, readEosTokenIds, readSpecialTokens } from "./special-tokens.js";
import { StreamDecoder } from "./stream-decoder.js";
import { type Offset, alignTokens } from "./tokenization/align-tokens.js";
import type { AddedToken } from "./tokenization/added-tokens.js";
import { type DecodeStageFactory, createDecoder, decodesByteCharacters } from "./tokenization/decoder.js";
import { type JsonObject, corruptFileError, isObject } from "./tokenization/tokenizer-json.js";
import { readVocabulary } from "./tokenization/token-model.js";
import { EncodingPipeline, type TextPosition } from "./tokenization/encoding-pipeline.js";
import { type PostProcessor, createPostProcessor, surroundWith } from "./tokenization/post-processor.js";
import { partText, tokenBytes } from "./tokenization/token-bytes.js";
import type { TokenizerFiles } from "./tokenizer-files.js";
import { writeTokenizerFolder } from "./tokenizer-folder.js";

/** How a text is encoded. */
export interface EncodeOptions {
  /** Put the beginning and end tokens around the text that the tokenizer's files ask for. Default true. */
  readonly addSpecialTokens?: boolean;
}

/** How ids are decoded. */
export interface DecodeOptions {
  /** Leave special tokens such as <|im_end|> out. Default false. */
  readonly skipSpecialTokens?: boolean;
}

/** A conversation as text and token ids. */
export interface EncodedChat {
  readonly text: string;
  readonly ids: number[];
  /** [start, end) token ranges of each assistant message: its content and its end token. */
  readonly assistantSpans: AssistantSpan[];
  /** For each token 1 when an assistant span holds it, else 0. */
  readonly assistantMask: Uint8Array;
}

/**
 * Text to token ids and back, and conversations to text, as Python's tokenizers and Transformers do it.
 * Made from parsed files; `AutoTokenizer` makes it from a folder, a hub id or a GGUF file.
 */
export class Tokenizer {
  /** The number of tokens, added ones included. Ids may have gaps; a model's embedding may have more rows. */
  readonly vocabSize: number;
  /** Chat templates by name; the main one is "default". Empty for most base models. */
  readonly chatTemplates: ReadonlyMap<string, string>;
  /** Special tokens by role: bos_token, eos_token, pad_token, unk_token, ... */
  readonly specialTokens: ReadonlyMap<SpecialTokenRole, string>;
  /** All ids whose tokens are special, in ascending order. */
  readonly specialTokenIds: readonly number[];
  /** The ids that end a reply: the eos token and what generation_config.json names. */
  readonly eosTokenIds: readonly number[];
  private readonly vocabulary: ReadonlyMap<string, number>;
  private readonly tokens: (string | undefined)[] = [];
  private readonly addedById = new Map<number, AddedToken>();
  private readonly addedIdsByContent = new Map<string, number>();
  private readonly specialIds: ReadonlySet<number>;
  private readonly pipeline: EncodingPipeline;
  private readonly postProcessor: PostProcessor | null;
  private readonly decoder: DecodeStageFactory[];
  /** Decoding is joining the bytes of all tokens. */
  private readonly decodesByJoiningBytes: boolean;
  private readonly encodeToken: (token: string) => Uint8Array;
  private readonly bytesById = new Map<number, Uint8Array>();
  private readonly encodePart: (part: string) => string;
  private readonly chatRenderer: ChatRenderer;

  /** `name` says in error messages which tokenizer it is. Throws FILE_CORRUPT and TOKENIZER_UNSUPPORTED. */
  constructor(
    readonly files: TokenizerFiles,
    readonly name = "(unnamed)",
  ) {
    const json = requireObject(files.tokenizerJson, "tokenizer.json");
    const config = optionalObject(files.tokenizerConfig, "tokenizer_config.json");
    if (!isObject(json.model)) throw corruptFileError('tokenizer.json: there is no "model".');
    this.vocabulary = readVocabulary(json.model);
    const specialMap = optionalObject(files.specialTokensMap, "special_tokens_map.json");
    const { byRole, added } = readSpecialTokens(json, config, specialMap, this.vocabulary);
    this.pipeline = new EncodingPipeline(json, this.vocabulary, added);
    for (const [token, id] of this.vocabulary) this.tokens[id] = token;
    for (const token of added) {
      this.tokens[token.id] = token.content;
      this.addedById.set(token.id, token);
      this.addedIdsByContent.set(token.content, token.id);
    }
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
    this.chatTemplates = readChatTemplates(config, files.chatTemplate);
    this.chatRenderer = new ChatRenderer(this.chatTemplates, byRole, name);
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

  get unkTokenId(): number | undefined {
    return this.getRoleId("unk_token");
  }

  /** The text's token ids. Special tokens written in the text become special tokens. */
  encode(text: string, { addSpecialTokens = true }: EncodeOptions = {}): number[] {
    const ids = this.pipeline.encode(text).flatMap((section) => section.ids);
    return addSpecialTokens && this.postProcessor ? this.postProcessor(ids) : ids;
  }

  /**
   * The ids of a text that follows other tokens: no beginning token, no space that a tokenizer puts before a first
   * word. `previousId` is the token before it.
   */
  encodeContinuation(text: string, previousId: number | undefined): number[] {
    if (previousId === undefined) return this.encode(text, { addSpecialTokens: false });
    const previous = this.addedById.get(previousId);
    const position: TextPosition = previous ? "after-token" : "continued";
    const rest = previous?.rstrip ? text.replace(/^\p{White_Space}+/u, "") : text;
    return this.pipeline.encode(rest, position).flatMap((section) => section.ids);
  }

  /** The text's ids, without added special tokens, and where each token lies in the text, in UTF-16 units. */
  encodeWithOffsets(text: string): { ids: number[]; offsets: Offset[] } {
    const ids: number[] = [];
    const offsets: Offset[] = [];
    for (const section of this.pipeline.encode(text)) {
      for (const id of section.ids) ids.push(id);
      if (section.token) {
        offsets.push([section.start, section.end]);
        continue;
      }
      const pieces = section.ids.map((id) => this.tokenBytes(id));
      for (const [start, end] of alignTokens(section.text, pieces, this.encodePart)) {
        offsets.push([section.start + start, section.start + end]);
      }
    }
    return { ids, offsets };
  }

  /** The text of token ids. Bytes that are no UTF-8 become U+FFFD; ids outside the vocabulary are left out. */
  decode(ids: Iterable<number>, options: DecodeOptions = {}): string {
    if (this.decodesByJoiningBytes) {
      const decodedIds = Array.from(ids).filter((id) => this.shouldDecode(id, options));
      return decodeLossy(
        decodedIds.map((id) =>
          this.addedById.has(id) ? this.encodeToken(this.tokens[id] ?? "") : this.tokenBytes(id),
        ),
      );
    }
    const stream = this.createStreamDecoder(options);
    let text = "";
    for (const id of ids) text += stream.push(id);
    return text + stream.end();
  }

  /** The text that ids add in the middle of a sequence, where no leading space is taken off. */
  decodeContinuation(ids: readonly number[]): string {
    return decodeLossy(ids.map((id) => this.tokenBytes(id)));
  }

  /** A decoder for tokens as they come; what it gives in total equals `decode` of all of them. */
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

  /** Whether the id's token is special: an end or role mark rather than text. */
  isSpecial(id: number): boolean {
    return this.specialIds.has(id);
  }

  /** Whether the id's token is found in a text before the model sees it, special or not. */
  isAdded(id: number): boolean {
    return this.addedById.has(id);
  }

  /**
   * The bytes that a token adds to a text when it stands in the middle of it; empty for an unknown id.
   * The bytes of a sequence, joined, are its text: what constrained decoding compares.
   */
  tokenBytes(id: number): Uint8Array {
    let bytes = this.bytesById.get(id);
    if (!bytes) {
      const token = this.tokens[id];
      bytes =
        token === undefined ? new Uint8Array() : this.addedById.has(id) ? utf8.encode(token) : this.encodeToken(token);
      this.bytesById.set(id, bytes);
    }
    return bytes;
  }

  /**
   * A conversation as text, by the tokenizer's chat template. Throws TEMPLATE_FAILED when there is no template, no
   * message, or when the template refuses the messages.
   */
  applyChatTemplate(messages: readonly ChatMessage[], options: RenderOptions = {}): string {
    return this.chatRenderer.render(messages, options);
  }

  /** A conversation as text and ids, with the tokens that are the assistant's. Throws as `applyChatTemplate`. */
  encodeChat(messages: readonly ChatMessage[], options: RenderOptions = {}): EncodedChat {
    const contents = this.specialTokenIds.map((id) => this.tokens[id] ?? "");
    const { text, ranges } = findAssistantRanges(this.chatRenderer, messages, options, contents);
    const { ids, offsets } = this.encodeWithOffsets(text);
    const assistantSpans = toTokenSpans(ranges, offsets);
    const assistantMask = new Uint8Array(ids.length);
    for (const [start, end] of assistantSpans) assistantMask.fill(1, start, end);
    return { text, ids, assistantSpans, assistantMask };
  }

  /**
   * Writes the tokenizer's files into a folder, so that Python's AutoTokenizer opens it: tokenizer.json,
   * tokenizer_config.json and, where there are any, special_tokens_map.json and chat_template.jinja.
   * Throws FILE_WRITE_FAILED.
   */
  async save(folder: string): Promise<void> {
    await writeTokenizerFolder(this.files, folder);
  }

  private shouldDecode(id: number, { skipSpecialTokens = false }: DecodeOptions): boolean {
    if (!Number.isSafeInteger(id) || id < 0) {
      throw new LlamaGymError("INVALID_ARGUMENT", `${id} is not a token id. Ids are integers from 0 on.`);
    }
    return !(skipSpecialTokens && this.specialIds.has(id));
  }

  private getRoleId(role: SpecialTokenRole): number | undefined {
    const content = this.specialTokens.get(role);
    return content === undefined ? undefined : this.tokenToId(content);
  }

  private collectEosTokenIds(generationConfig: JsonObject): number[] {
    const eos = this.eosTokenId;
    const ids = eos === undefined ? [] : [eos];
    for (const id of readEosTokenIds(generationConfig)) if (!ids.includes(id)) ids.push(id);
    return ids;
  }

  /** Files without a post-processor may still ask for a beginning or end token in tokenizer_config.json. */
  private createConfiguredPostProcessor(json: JsonObject, config: JsonObject): PostProcessor | null {
    if (json.post_processor !== null && json.post_processor !== undefined) return null;
    return surroundWith(
      config.add_bos_token === true ? this.bosTokenId : undefined,
      config.add_eos_token === true ? this.eosTokenId : undefined,
    );
  }
}

const utf8 = new TextEncoder();

function decodeLossy(pieces: readonly Uint8Array[]): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.concat(pieces));
}

function requireObject(value: unknown, file: string): JsonObject {
  if (!isObject(value)) throw corruptFileError(`${file} must hold a JSON object.`);
  return value;
}

function optionalObject(value: unknown, file: string): JsonObject {
  return value === undefined || value === null ? {} : requireObject(value, file);
}
