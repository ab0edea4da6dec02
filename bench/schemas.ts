import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type ByteAutomaton, DEAD_STATE } from "../src/generation/constraints/automaton/byte-automaton.js";
import { compileToByteAutomaton } from "../src/generation/constraints/output-constraint.js";
import { formatJsonLine } from "../src/core/json.js";
import type { JsonSchema } from "../src/generation/constraints/json-schema/keywords.js";

/** A JSON value whose numbers are as Python writes them. */
type PythonJson = string | PythonJson[] | Map<string, PythonJson> | { readonly text: string };

/** Results of the schemas of one set. */
interface SetResult {
  schemas: number;
  /** All valid instances are accepted, all others rejected. */
  passed: number;
  refused: number;
  validRejected: number;
  /** Those of validRejected that pass if numbers are written as JavaScript does: 5 for 5.0. */
  onlyByNumbers: number;
  invalidAccepted: number;
}

const emptyResult = (): SetResult => ({
  schemas: 0,
  passed: 0,
  refused: 0,
  validRejected: 0,
  onlyByNumbers: 0,
  invalidAccepted: 0,
});

interface SchemaTests {
  readonly schema: JsonSchema;
  readonly tests: readonly { readonly valid: boolean; readonly data: unknown }[];
}

/**
 * Compiles schemas and checks which instances they accept, as the runner of MaskBench does
 * (github.com/guidance-ai/jsonschemabench, maskbench/data): each instance is written by Python's
 * json.dumps. A schema passes if it compiles, accepts all its valid instances and rejects all
 * others; some have no instances. The folder has MaskBench's files, or those of a draft of
 * JSON-Schema-Test-Suite, whose files are lists of schemas.
 */
export function runSchemas(folder: string, { verbose }: { readonly verbose: boolean }): string {
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  if (files.length === 0) throw new Error(`${folder} has no JSON files; it should be maskbench/data or tests/draft...`);
  const sets = new Map<string, SetResult>();
  const times: number[] = [];
  for (const name of files.sort()) {
    const set = name.replace(/(---.*|_\d+)?\.json$/, "");
    const result = sets.get(set) ?? emptyResult();
    sets.set(set, result);
    const text = readFileSync(join(folder, name), "utf8");
    const parsed = JSON.parse(text) as SchemaTests | SchemaTests[];
    const written = parsePythonJson(text);
    const groups = Array.isArray(parsed) ? parsed : [parsed];
    const writtenGroups = (Array.isArray(written) ? written : [written]) as Map<string, PythonJson>[];
    for (const [i, group] of groups.entries()) {
      result.schemas++;
      const tests = writtenGroups[i].get("tests") as Map<string, PythonJson>[];
      const instances = tests.map((test) => formatPythonJson(test.get("data")!));
      const problem = checkSchema(group, instances, result, times);
      if (problem !== undefined && verbose) console.log(`${name}\t${problem}`);
    }
  }
  return formatTable(sets, times);
}

/** Counts what becomes of a schema, and describes a failure. */
function checkSchema(
  { schema, tests }: SchemaTests,
  instances: readonly string[],
  result: SetResult,
  times: number[],
): string | undefined {
  let automaton: ByteAutomaton;
  const start = performance.now();
  try {
    automaton = compileToByteAutomaton({ jsonSchema: schema });
  } catch (error) {
    result.refused++;
    return `refused: ${(error as Error).message}`;
  } finally {
    times.push(performance.now() - start);
  }
  /** An accepted invalid instance counts before a rejected valid one. */
  const findWrong = (texts: readonly string[]) => {
    const accepted = tests.findIndex(({ valid }, i) => !valid && accepts(automaton, texts[i]));
    return accepted < 0 ? tests.findIndex(({ valid }, i) => valid && !accepts(automaton, texts[i])) : accepted;
  };
  const wrong = findWrong(instances);
  if (wrong < 0) {
    result.passed++;
    return undefined;
  }
  const { valid } = tests[wrong];
  if (valid) result.validRejected++;
  if (valid && findWrong(tests.map(({ data }) => formatJsonLine(data))) < 0) result.onlyByNumbers++;
  if (!valid) result.invalidAccepted++;
  const accepted = acceptedPart(automaton, instances[wrong]);
  const rest = instances[wrong].slice(accepted.length);
  return `${valid ? "rejects valid" : "accepts invalid"}: ${accepted.slice(-60)} >>> ${rest.slice(0, 60)}`;
}

function accepts(automaton: ByteAutomaton, text: string): boolean {
  const state = automaton.walk(0, new TextEncoder().encode(text));
  return state !== DEAD_STATE && automaton.accepting[state] === 1;
}

function acceptedPart(automaton: ByteAutomaton, text: string): string {
  const characters = Array.from(text);
  let state = 0;
  for (const [i, character] of characters.entries()) {
    state = automaton.walk(state, new TextEncoder().encode(character));
    if (state === DEAD_STATE) return characters.slice(0, i).join("");
  }
  return text;
}

function formatTable(sets: ReadonlyMap<string, SetResult>, times: number[]): string {
  const total = emptyResult();
  for (const result of sets.values())
    for (const key of Object.keys(total) as (keyof SetResult)[]) total[key] += result[key];
  const header = ["set", "schemas", "passed", "%", "refused", "valid rejected", "(by 5.0 for 5)", "invalid accepted"];
  const rows = [...sets, ["total", total] as const].map(([name, result]) => [
    name,
    result.schemas,
    result.passed,
    ((100 * result.passed) / result.schemas).toFixed(1),
    result.refused,
    result.validRejected,
    result.onlyByNumbers,
    result.invalidAccepted,
  ]);
  times.sort((a, b) => a - b);
  const percentile = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))].toFixed(1);
  const lines = [header, header.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`);
  return `${lines.join("\n")}\n\ncompilation: median ${percentile(0.5)} ms, 99 % ${percentile(0.99)} ms, maximum ${percentile(1)} ms`;
}

/** Parses JSON and keeps the order of names and the text of numbers. */
function parsePythonJson(text: string): PythonJson {
  const token = /\s*([{}[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}[\],:"]+)/gy;
  const next = () => token.exec(text)![1];
  const read = (first: string): PythonJson => {
    if (first === "[") {
      const items: PythonJson[] = [];
      for (let each = next(); each !== "]"; each = next()) if (each !== ",") items.push(read(each));
      return items;
    }
    if (first === "{") {
      const members = new Map<string, PythonJson>();
      for (let each = next(); each !== "}"; each = next()) {
        if (each === ",") continue;
        next();
        members.set(JSON.parse(each) as string, read(next()));
      }
      return members;
    }
    return first.startsWith('"') ? (JSON.parse(first) as string) : { text: pythonScalar(first) };
  };
  return read(next());
}

/**
 * Writes a number as Python's json.dumps does: 1.0 keeps its point, and exponents have two digits.
 */
function pythonScalar(source: string): string {
  if (!/^-?\d/.test(source) || /^-?\d+$/.test(source)) return source;
  const value = Number(source);
  const size = Math.abs(value);
  if (size >= 1e16 || (size < 1e-4 && size > 0)) {
    const [digits, exponent] = value.toExponential().split("e");
    return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
  }
  return Number.isInteger(value) ? `${Object.is(value, -0) ? "-0" : value}.0` : String(value);
}

function formatPythonJson(value: PythonJson): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(formatPythonJson).join(", ")}]`;
  if (!(value instanceof Map)) return value.text;
  const members = Array.from(value, ([name, member]) => `${JSON.stringify(name)}: ${formatPythonJson(member)}`);
  return `{${members.join(", ")}}`;
}
