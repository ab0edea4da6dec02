import { compileToByteAutomaton } from "../../src/generation/constraints/output-constraint.js";
import { DEAD_STATE } from "../../src/generation/constraints/automaton/byte-automaton.js";
import type { RandomStream } from "../../src/core/random/random-stream.js";
import type { JsonSchema } from "../../src/generation/constraints/json-schema/keywords.js";

/** Bytes that a text takes at random before it is completed in the shortest way. */
const MAX_RANDOM_BYTES = 160;

/**
 * Returns a function that writes random texts of a schema. Throws as compileToByteAutomaton does.
 */
export function randomTextsOf(schema: JsonSchema, random: RandomStream): () => string {
  const automaton = compileToByteAutomaton({ jsonSchema: schema });
  const shortest = automaton.shortestTexts(new Uint8Array(256).fill(1))!;
  const { accepting, representativeBytes: bytes } = automaton;
  const randomByte = (state: number): number => {
    const start = random.integers(0, bytes.length);
    const order = bytes.map((_, i) => bytes[(start + i) % bytes.length]);
    return order.find((byte) => automaton.step(state, byte) !== DEAD_STATE)!;
  };
  return () => {
    const text: number[] = [];
    const limit = random.integers(0, MAX_RANDOM_BYTES);
    for (let state = 0; accepting[state] === 0 || (text.length < limit && automaton.canContinue(state));) {
      const byte = text.length < limit ? randomByte(state) : shortest(state);
      text.push(byte);
      state = automaton.step(state, byte);
    }
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(text));
  };
}

/** Returns whether a schema allows a text. */
export function readerOf(schema: JsonSchema): (text: string) => boolean {
  const automaton = compileToByteAutomaton({ jsonSchema: schema });
  return (text) => {
    const state = automaton.walk(0, new TextEncoder().encode(text));
    return state !== DEAD_STATE && automaton.accepting[state] === 1;
  };
}
