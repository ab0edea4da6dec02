import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ByteAutomaton, DEAD_STATE } from "../src/generation/constraints/automaton/byte-automaton.js";
import { compileToByteAutomaton } from "../src/generation/constraints/output-constraint.js";
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
  invalidAccepted: number;
}

interface SchemaFile {
  readonly schema: JsonSchema;
  readonly tests: readonly { readonly valid: boolean }[];
}

/**
 * Compiles the schemas of MaskBench (github.com/guidance-ai/jsonschemabench, maskbench/data) and checks which instances they accept,
 * as its runner does: each instance is written by Python's json.dumps, and accepted if every part of it is allowed. A schema passes
 * if it compiles, accepts all its valid instances and rejects all others; some have no instances.
 */
export function runSchemas(folder: string, { verbose }: { readonly verbose: boolean }): string {
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  const sets = new Map<string, SetResult>();
  const times: number[] = [];
  for (const name of files.sort()) {
    const set = name.replace(/---.*/, "").replace(/_\d+\.json$/, "");
    const result = sets.get(set) ?? { schemas: 0, passed: 0, refused: 0, validRejected: 0, invalidAccepted: 0 };
    sets.set(set, result);
    result.schemas++;
    const problem = checkFile(readFileSync(join(folder, name), "utf8"), result, times);
    if (problem !== undefined && verbose) console.log(`${name}\t${problem}`);
  }
  return formatTable(sets, times);
}

/** Counts what becomes of a file's schema, and describes a failure. */
function checkFile(text: string, result: SetResult, times: number[]): string | undefined {
  const { schema, tests } = JSON.parse(text) as SchemaFile;
  const instances = ((parsePythonJson(text) as Map<string, PythonJson>).get("tests") as Map<string, PythonJson>[]).map(
    (test) => formatPythonJson(test.get("data")!),
  );
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
  const wrong = tests.findIndex(({ valid }, i) => accepts(automaton, instances[i]) !== valid);
  if (wrong < 0) {
    result.passed++;
    return undefined;
  }
  if (tests[wrong].valid) result.validRejected++;
  else result.invalidAccepted++;
  const kind = tests[wrong].valid ? "rejects valid" : "accepts invalid";
  return `${kind}: ${acceptedPart(automaton, instances[wrong]).slice(-60)} >>> ${instances[wrong].slice(acceptedPart(automaton, instances[wrong]).length).slice(0, 60)}`;
}

function accepts(automaton: ByteAutomaton, text: string): boolean {
  return automaton.walk(0, new TextEncoder().encode(text)) !== DEAD_STATE;
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
  const total: SetResult = { schemas: 0, passed: 0, refused: 0, validRejected: 0, invalidAccepted: 0 };
  for (const result of sets.values())
    for (const key of Object.keys(total) as (keyof SetResult)[]) total[key] += result[key];
  const header = ["set", "schemas", "passed", "%", "refused", "valid rejected", "invalid accepted"];
  const rows = [...sets, ["total", total] as const].map(([name, result]) => [
    name,
    result.schemas,
    result.passed,
    ((100 * result.passed) / result.schemas).toFixed(1),
    result.refused,
    result.validRejected,
    result.invalidAccepted,
  ]);
  times.sort((a, b) => a - b);
  const percentile = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))].toFixed(1);
  const lines = [header, header.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`);
  return `${lines.join("\n")}\n\ncompilation: median ${percentile(0.5)} ms, 99 % ${percentile(0.99)} ms, maximum ${percentile(1)} ms`;
}

/** Parses JSON and keeps the order of names and the text of numbers. */
export function parsePythonJson(text: string): PythonJson {
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

/** Writes a number as Python's json.dumps does: 1.0 keeps its point, and exponents have two digits. */
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
