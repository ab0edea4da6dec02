import { spelledBytes } from "./byte-level.js";
import { type JsonObject, corrupt, isObject, objectList, stringMember, unsupported } from "./json.js";
import { compilePattern } from "./pattern.js";

/**
 * A step of decoding that works on tokens as they come: `push` gives the text that no later token can change,
 * `end` what was held back. A whole decoder is a chain of them.
 */
export interface DecodeStage {
  push(piece: string): string[];
  end(): string[];
}

/** Makes a fresh stage, for one text. */
export type DecodeStageFactory = () => DecodeStage;

const supported = ["Sequence", "ByteLevel", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"];
const byteToken = /^<0x([0-9A-Fa-f]{2})>$/;

/** The stages of the decoder that tokenizer.json describes. */
export function createDecoder(config: unknown): DecodeStageFactory[] {
  if (config === null || config === undefined) return [spaced];
  const steps = flatten(config);
  let fused = false;
  return steps.map((step) => {
    const whole = fused;
    fused ||= step.type === "Fuse" || step.type === "ByteLevel";
    return stage(step, whole);
  });
}

/** Whether the decoder reads tokens such as <0xE2> as bytes. */
export function readsByteTokens(config: unknown): boolean {
  return config !== null && config !== undefined && flatten(config).some((step) => step.type === "ByteFallback");
}

/** Whether the decoder reads each character of a token as a byte. */
export function readsByteCharacters(config: unknown): boolean {
  return config !== null && config !== undefined && flatten(config).some((step) => step.type === "ByteLevel");
}

/** What one token reads as in the middle of a text, by the steps that work on single tokens. */
export function createTokenReader(config: unknown): (token: string) => string {
  if (config === null || config === undefined) return (token) => token;
  const steps = flatten(config)
    .filter((step) => step.type === "Replace" || step.type === "Metaspace")
    .map((step) => (step.type === "Replace" ? replacer(step) : unmark(step)));
  return (token) => steps.reduce((text, step) => step(text), token);
}

function flatten(config: unknown): JsonObject[] {
  if (!isObject(config)) throw unsupported("A decoder", config, supported);
  return config.type === "Sequence" ? objectList(config, "decoders").flatMap(flatten) : [config];
}

/** `fused`: an earlier step joined all tokens to one. */
function stage(config: JsonObject, fused: boolean): DecodeStageFactory {
  switch (config.type) {
    case "ByteLevel":
      return byteLevel;
    case "Metaspace":
      return () => metaspace(config);
    case "Replace": {
      const replace = replacer(config);
      return fused ? () => atEnd(replace) : () => perPiece(replace);
    }
    case "ByteFallback":
      return byteFallback;
    case "Fuse":
      return () => perPiece((piece) => piece);
    case "Strip": {
      const { content, start, stop } = stripSettings(config);
      if (fused) return () => stripWhole(content, start, stop);
      return () => perPiece((piece) => stripEnd(stripStart(piece, content, start), content, stop));
    }
    default:
      throw unsupported("A decoder", config.type, supported);
  }
}

function perPiece(change: (piece: string) => string): DecodeStage {
  return { push: (piece) => [change(piece)], end: () => [] };
}

function atEnd(change: (text: string) => string): DecodeStage {
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
function spaced(): DecodeStage {
  let first = true;
  return perPiece((piece) => {
    const text = first ? piece : ` ${piece}`;
    first = false;
    return text;
  });
}

function byteLevel(): DecodeStage {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    push: (piece) => [decoder.decode(spelledBytes(piece), { stream: true })],
    end: () => [decoder.decode()],
  };
}

/** A run of byte tokens is text when it is UTF-8 as a whole, and otherwise one replacement character for each byte. */
function byteFallback(): DecodeStage {
  let run: number[] = [];
  const flush = (): string[] => {
    if (run.length === 0) return [];
    const bytes = Uint8Array.from(run);
    run = [];
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
      run.push(Number.parseInt(byte[1], 16));
      return [];
    },
    end: flush,
  };
}

function metaspace(config: JsonObject): DecodeStage {
  const read = unmark(config);
  const mark = metaspaceMark(config);
  const dropsFirst = (config.prepend_scheme ?? (config.add_prefix_space === false ? "never" : "always")) !== "never";
  let first = true;
  return perPiece((piece) => {
    const text = first && dropsFirst ? piece.replaceAll(mark, "") : read(piece);
    first = false;
    return text;
  });
}

function metaspaceMark(config: JsonObject): string {
  return typeof config.replacement === "string" ? config.replacement : "▁";
}

function unmark(config: JsonObject): (token: string) => string {
  const mark = metaspaceMark(config);
  return (token) => token.replaceAll(mark, " ");
}

function replacer(config: JsonObject): (token: string) => string {
  const pattern = compilePattern(config.pattern);
  const content = stringMember(config, "content");
  return (token) => token.replace(pattern, () => content);
}

function stripSettings(config: JsonObject): { content: string; start: number; stop: number } {
  const { start, stop } = config;
  if (typeof start !== "number" || typeof stop !== "number") {
    throw corrupt("tokenizer.json: the Strip decoder needs the numbers start and stop.");
  }
  return { content: stringMember(config, "content"), start, stop };
}

function stripStart(text: string, content: string, most: number): string {
  let rest = text;
  for (let cut = 0; cut < most && rest.startsWith(content); cut++) rest = rest.slice(content.length);
  return rest;
}

function stripEnd(text: string, content: string, most: number): string {
  let rest = text;
  for (let cut = 0; cut < most && rest.endsWith(content); cut++) rest = rest.slice(0, rest.length - content.length);
  return rest;
}

/** Strips the whole text's ends: its start as soon as it is seen, as much of its end as may go is held back. */
function stripWhole(content: string, start: number, stop: number): DecodeStage {
  let head = "";
  let headDone = start === 0;
  let tail = "";
  const release = (text: string): string[] => {
    tail += text;
    const kept = Math.max(0, tail.length - stop * content.length);
    const ready = tail.slice(0, kept);
    tail = tail.slice(kept);
    return ready === "" ? [] : [ready];
  };
  return {
    push(piece) {
      if (headDone) return release(piece);
      head += piece;
      if (head.length < start * content.length) return [];
      headDone = true;
      return release(stripStart(head, content, start));
    },
    end() {
      if (!headDone) tail = stripStart(head, content, start) + tail;
      return [stripEnd(tail, content, stop)];
    },
  };
}
