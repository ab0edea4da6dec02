import type { RandomStream } from "../../src/index.js";

const DEPTH = 20_000;
/**
 * Repeated values stay below this length, so that the time is the reader's and not the file
 * system's.
 */
const MAX_REPEATED_LENGTH = 200_000;
const NESTED = ["[", '{"a":', '[{"type":"Tuple","spaces":', '{"anyOf":['] as const;

/** Values that JSON.stringify cannot write, by the strings that represent them in a tree. */
const RAW_TEXTS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(NESTED.map((open, i) => [`@nested${i}@`, nest(open)])),
  "@huge@": "1e400",
  "@long@": "9".repeat(400),
  "@duplicate@": '{"a":1,"a":2}',
};

const NUMBERS = [0, -1, 1, 0.5, 255, 65_536, 1e6, 1e9, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53, -(2 ** 53), 1e308];
const STRINGS = [
  ..."__proto__ constructor toString then %zz #/$defs/% {{ 1e9 NaN Infinity ../../etc é \0 \ud800 \u{1f600}".split(" "),
  "",
  " ",
  "a".repeat(1e6),
  "(".repeat(5e4),
  "a*".repeat(1e4),
  ...Object.keys(RAW_TEXTS),
];

function nest(open: string): string {
  const close = (open.match(/[[{]/g) ?? []).reverse().map((letter) => (letter === "[" ? "]" : "}"));
  return `${open.repeat(DEPTH)}0${close.join("").repeat(DEPTH)}`;
}

function hostileValue(random: RandomStream): unknown {
  const kind = random.integers(6);
  if (kind === 0) return random.choice(NUMBERS);
  if (kind === 1) return random.choice([null, true, false]);
  if (kind === 2) return random.choice([[], {}, [[]], [null], { a: {} }, [0, "a", null]]);
  if (kind === 3) return Array.from({ length: random.choice([2, 100, 1e5]) }, (_, i) => i);
  return random.choice(STRINGS);
}

type Container = unknown[] | Record<string, unknown>;

const isContainer = (value: unknown): value is Container => typeof value === "object" && value !== null;

function listContainers(value: unknown): Container[] {
  return isContainer(value) ? [value, ...Object.values(value).flatMap(listContainers)] : [];
}

function repeatValue(value: unknown, random: RandomStream): unknown[] {
  const count = random.choice([1, 3, 100]);
  const isSmall = (JSON.stringify(value) ?? "").length * count < MAX_REPEATED_LENGTH;
  return Array.from({ length: isSmall ? count : 1 }, () => value);
}

/** Replaces, removes, repeats, renames or swaps one entry of a tree. */
function mutateEntry(root: Container, random: RandomStream): void {
  const container = random.choice(listContainers(root)) as Record<string, unknown>;
  const keys = Object.keys(container);
  if (keys.length === 0) {
    container[Array.isArray(container) ? 0 : random.choice(STRINGS)] = hostileValue(random);
    return;
  }
  const key = random.choice(keys);
  const other = random.choice(keys);
  const value = container[key];
  switch (random.integers(8)) {
    case 0:
      if (Array.isArray(container)) container.splice(Number(key), 1);
      else delete container[key];
      return;
    case 1:
      [container[key], container[other]] = [container[other], value];
      return;
    case 2:
      if (Array.isArray(container)) container.push(...repeatValue(value, random));
      else
        Object.defineProperty(container, random.choice(STRINGS), {
          value,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      return;
    case 3:
      container[key] = structuredClone(random.choice(listContainers(root)));
      return;
    case 4:
      if (typeof value === "number")
        container[key] = value * random.choice([-1, 0, 0.5, 2, 1e6]) + random.choice([0, 1]);
      else if (typeof value === "string") container[key] = random.choice([value + value, value.slice(1), `${value}\0`]);
      else container[key] = [value];
      return;
    default:
      container[key] = hostileValue(random);
  }
}

/** Returns the text of a JSON tree after one to three mutations. */
export function mutateJson(tree: unknown, random: RandomStream): string {
  const root = structuredClone(tree) as Container;
  const count = 1 + random.integers(3);
  for (let i = 0; i < count; i++) mutateEntry(root, random);
  const text = JSON.stringify(random.integers(50) === 0 ? hostileValue(random) : root).replace(
    /"(@\w+@)"/g,
    (whole, name: string) => RAW_TEXTS[name] ?? whole,
  );
  return random.integers(20) === 0 ? text.slice(0, random.integers(text.length + 1)) : text;
}

const WORDS = [0n, 1n, 255n, 0x7fffffffn, 0xffffffffn, 0x100000000n, 0x7fffffffffffffffn, 0xffffffffffffffffn];

/** Returns a copy of a file after one to eight mutations of its first `header` bytes. */
export function mutateBytes(file: Uint8Array, header: number, random: RandomStream): Uint8Array {
  let bytes = Buffer.from(file);
  const count = 1 + random.integers(8);
  for (let i = 0; i < count; i++) bytes = mutateOnce(bytes, Math.max(9, Math.min(header, bytes.length)), random);
  return bytes;
}

function mutateOnce(bytes: Buffer<ArrayBuffer>, header: number, random: RandomStream): Buffer<ArrayBuffer> {
  if (bytes.length < 16) return Buffer.concat([bytes, Buffer.alloc(16)]);
  const at = random.integers(header - 8);
  const from = random.integers(header - 8);
  switch (random.integers(9)) {
    case 0:
      bytes[at] ^= 1 << random.integers(8);
      return bytes;
    case 1:
      bytes[at] = random.choice([0, 1, 0x7f, 0x80, 0xff]);
      return bytes;
    case 2:
      bytes.writeBigUInt64LE(random.choice(WORDS), at);
      return bytes;
    case 3:
      bytes.writeUInt32LE(Number(random.choice(WORDS) & 0xffffffffn), at);
      return bytes;
    case 4:
      bytes.copyWithin(at, from, from + 1 + random.integers(8));
      return bytes;
    case 5: {
      const word = bytes.readBigUInt64LE(at);
      bytes.writeBigUInt64LE(bytes.readBigUInt64LE(from), at);
      bytes.writeBigUInt64LE(word, from);
      return bytes;
    }
    case 6:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random.integers(16))]);
    case 7:
      return Buffer.concat([bytes.subarray(0, at), Buffer.alloc(1 + random.integers(64), at), bytes.subarray(at)]);
    default:
      return random.integers(4) === 0 ? bytes.subarray(0, random.integers(bytes.length)) : bytes;
  }
}

/** Returns a text in which a few lines or pieces are repeated, swapped, removed or replaced. */
export function mutateText(text: string, pieces: readonly string[], random: RandomStream): string {
  let parts = text.split(/(?<=[\n}%])/);
  const count = 1 + random.integers(4);
  for (let i = 0; i < count && parts.length > 0; i++) {
    const at = random.integers(parts.length);
    const kind = random.integers(5);
    if (kind === 0) parts.splice(at, 1);
    else if (kind === 1) parts.splice(at, 0, random.choice(parts));
    else if (kind === 2) parts[at] = parts[at].slice(random.integers(parts[at].length + 1));
    else parts.splice(at, random.integers(2), random.choice(pieces));
    if (random.integers(100) === 0) parts = parts.slice(0, at);
  }
  return parts.join("");
}
