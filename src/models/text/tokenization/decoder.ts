import { encodeUtf8 } from "../../../core/bytes.js";
import { decodeBytes } from "./byte-level.js";
import type { Normalizer } from "./normalizer.js";
import {
  type JsonRecord,
  corruptFileError,
  isObject,
  readObjectList,
  readString,
  unsupportedTypeError,
} from "./tokenizer-json.js";
import { createReplacer } from "./compile-pattern.js";

/**
 * An incremental decoding stage: `push` returns text that later tokens cannot change, `end` returns
 * the rest. A decoder is a chain of stages.
 */
export interface DecodeStage {
  push(piece: string): string[];
  end(): string[];
}

/** Creates a stage for one text. */
export type DecodeStageFactory = () => DecodeStage;

const supported = ["Sequence", "ByteLevel", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"];
const byteToken = /^<0x([0-9A-Fa-f]{2})>$/;

/** Creates the decoder that tokenizer.json describes. */
export function createDecoder(config: unknown): DecodeStageFactory[] {
  if (config === null || config === undefined) return [joinWithSpaces];
  const steps = flattenDecoders(config);
  let fused = false;
  return steps.map((step) => {
    const isFused = fused;
    fused ||= step.type === "Fuse" || step.type === "ByteLevel";
    return createStage(step, isFused);
  });
}

/** Whether tokens such as <0xE2> are bytes. */
function decodesByteTokens(config: unknown): boolean {
  return (
    config !== null && config !== undefined && flattenDecoders(config).some((step) => step.type === "ByteFallback")
  );
}

/** Whether each character of a token is a byte. */
export function decodesByteCharacters(config: unknown): boolean {
  return config !== null && config !== undefined && flattenDecoders(config).some((step) => step.type === "ByteLevel");
}

/** Decodes a token in the middle of a text with the stages that work on single tokens. */
function createTokenReader(config: unknown): (token: string) => string {
  if (config === null || config === undefined) return (token) => token;
  const steps = flattenDecoders(config)
    .filter((step) => step.type === "Replace" || step.type === "Metaspace")
    .map((step) => (step.type === "Replace" ? createReplacer(step) : createMarkReplacer(step)));
  return (token) => steps.reduce((text, step) => step(text), token);
}

function flattenDecoders(config: unknown): JsonRecord[] {
  if (!isObject(config)) throw unsupportedTypeError("A decoder", config, supported);
  return config.type === "Sequence" ? readObjectList(config, "decoders").flatMap(flattenDecoders) : [config];
}

/** @param fused whether an earlier stage joined all tokens */
function createStage(config: JsonRecord, isFused: boolean): DecodeStageFactory {
  switch (config.type) {
    case "ByteLevel":
      return byteLevel;
    case "Metaspace":
      return () => metaspace(config);
    case "Replace": {
      const replace = createReplacer(config);
      return isFused ? () => mapWholeText(replace) : () => mapPieces(replace);
    }
    case "ByteFallback":
      return byteFallback;
    case "Fuse":
      return () => mapPieces((piece) => piece);
    case "Strip": {
      const { content, start, stop } = readStripConfig(config);
      if (isFused) return () => stripWhole(content, start, stop);
      return () => mapPieces((piece) => stripEnd(stripStart(piece, content, start), content, stop));
    }
    default:
      throw unsupportedTypeError("A decoder", config.type, supported);
  }
}

function mapPieces(change: (piece: string) => string): DecodeStage {
  return { push: (piece) => [change(piece)], end: () => [] };
}

function mapWholeText(change: (text: string) => string): DecodeStage {
  let text = "";
  return {
    push(piece) {
      text += piece;
      return [];
    },
    end: () => [change(text)],
  };
}

/** Without a decoder, tokens are words. */
function joinWithSpaces(): DecodeStage {
  let first = true;
  return mapPieces((piece) => {
    const text = first ? piece : ` ${piece}`;
    first = false;
    return text;
  });
}

function byteLevel(): DecodeStage {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return { push: (piece) => [decoder.decode(decodeBytes(piece), { stream: true })], end: () => [decoder.decode()] };
}

/**
 * A run of byte tokens is decoded if it is valid UTF-8, else each byte becomes a replacement
 * character.
 */
function byteFallback(): DecodeStage {
  let pendingBytes: number[] = [];
  const flush = (): string[] => {
    if (pendingBytes.length === 0) return [];
    const bytes = Uint8Array.from(pendingBytes);
    pendingBytes = [];
    try {
      return [new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)];
    } catch {
      return ["\ufffd".repeat(bytes.length)];
    }
  };
  return {
    push(piece) {
      const byte = byteToken.exec(piece);
      if (!byte) return [...flush(), piece];
      pendingBytes.push(Number.parseInt(byte[1], 16));
      return [];
    },
    end: flush,
  };
}

function metaspace(config: JsonRecord): DecodeStage {
  const replaceMark = createMarkReplacer(config);
  const mark = readMetaspaceMark(config);
  const dropsFirst = (config.prepend_scheme ?? (config.add_prefix_space === false ? "never" : "always")) !== "never";
  let first = true;
  return mapPieces((piece) => {
    const text = first && dropsFirst ? piece.replaceAll(mark, "") : replaceMark(piece);
    first = false;
    return text;
  });
}

function readMetaspaceMark(config: JsonRecord): string {
  return typeof config.replacement === "string" ? config.replacement : "▁";
}

function createMarkReplacer(config: JsonRecord): (token: string) => string {
  const mark = readMetaspaceMark(config);
  return (token) => token.replaceAll(mark, " ");
}

function readStripConfig(config: JsonRecord): { content: string; start: number; stop: number } {
  const { start, stop } = config;
  if (typeof start !== "number" || typeof stop !== "number")
    throw corruptFileError("tokenizer.json: the Strip decoder needs the numbers start and stop.");
  const content = readString(config, "content");
  if (content === "") throw corruptFileError("tokenizer.json: the Strip decoder needs a character as content.");
  return { content, start, stop };
}

function stripStart(text: string, content: string, maxCount: number): string {
  let rest = text;
  for (let count = 0; count < maxCount && rest.startsWith(content); count++) rest = rest.slice(content.length);
  return rest;
}

function stripEnd(text: string, content: string, maxCount: number): string {
  let rest = text;
  for (let count = 0; count < maxCount && rest.endsWith(content); count++)
    rest = rest.slice(0, rest.length - content.length);
  return rest;
}

/**
 * Strips both ends of the text; the start immediately, while text that may belong to the end is
 * buffered.
 */
function stripWhole(content: string, start: number, stop: number): DecodeStage {
  let head = "";
  let isHeadDone = start === 0;
  let tail = "";
  const release = (text: string): string[] => {
    tail += text;
    const readyLength = Math.max(0, tail.length - stop * content.length);
    const ready = tail.slice(0, readyLength);
    tail = tail.slice(readyLength);
    return ready === "" ? [] : [ready];
  };
  return {
    push(piece) {
      if (isHeadDone) return release(piece);
      head += piece;
      if (head.length < start * content.length) return [];
      isHeadDone = true;
      return release(stripStart(head, content, start));
    },
    end() {
      if (!isHeadDone) tail = stripStart(head, content, start) + tail;
      return [stripEnd(tail, content, stop)];
    },
  };
}

/** Returns the bytes of a vocabulary token in the middle of a text, by tokenizer.json's decoder. */
export function tokenBytes(decoder: unknown): (token: string) => Uint8Array {
  if (decodesByteCharacters(decoder)) return decodeBytes;
  const readToken = createTokenReader(decoder);
  const byteTokens = decodesByteTokens(decoder);
  return (token) => {
    const byte = byteTokens ? byteToken.exec(token) : null;
    return byte ? Uint8Array.of(Number.parseInt(byte[1], 16)) : encodeUtf8(readToken(token));
  };
}

/** Returns the text that tokens represent for a small part of a text: normalized, with spaces. */
export function partText(decoder: unknown, normalizer: Normalizer | null): (part: string) => string {
  const normalize = normalizer ?? ((part: string) => part);
  if (decodesByteCharacters(decoder)) return normalize;
  const readToken = createTokenReader(decoder);
  return (part) => readToken(normalize(part));
}
