// Process that tries the mutants of one driver: worker.js DRIVER SCRATCH
import { LlamaGymError, RandomStream } from "../../src/index.js";
import { MAX_MEMORY_BYTES, type Attempt, type BatchRequest, type Totals, type WorkerMessage } from "./driver.js";
import { drivers } from "./drivers/index.js";

/** Messages of JavaScript itself, which must not reach a user. */
const RAW_MESSAGE =
  /Cannot (read|set|convert|mix)|is not (a function|a constructor|defined)|(?<!object )is not iterable|call stack|Invalid (array|string|typed array) length|out of memory|allocation failed|must be of type/i;

const send = (message: WorkerMessage) => process.send!(message);

type TriedMutant = Omit<Extract<WorkerMessage, { type: "tried" }>, "type" | "mutant">;

async function tryMutant(attempt: Attempt, seed: number, mutant: number): Promise<TriedMutant> {
  let totals: Totals;
  try {
    totals = (await attempt(new RandomStream(seed, [mutant]))) ?? {};
  } catch (error) {
    if (!(error instanceof LlamaGymError)) return { outcome: "raw", detail: formatError(error) };
    if (RAW_MESSAGE.test(error.message))
      return { outcome: "raw", detail: `${error.toString()}\n${formatError(error.cause ?? error)}` };
    return { outcome: "refused", detail: error.code };
  }
  const bytes = process.resourceUsage().maxRSS * 1024;
  return bytes > MAX_MEMORY_BYTES
    ? { outcome: "memory", detail: `peak of ${bytes} bytes` }
    : { outcome: "accepted", detail: "", totals };
}

function formatError(error: unknown): string {
  return error instanceof Error ? String(error.stack) : String(error);
}

const [name, scratch] = process.argv.slice(2);
const attempt = await drivers[name].start(scratch);
process.on("disconnect", () => process.exit());
process.on("message", ({ seed, first, count }: BatchRequest) => {
  void (async () => {
    for (let mutant = first; mutant < first + count; mutant++) {
      send({ type: "trying", mutant });
      send({ type: "tried", mutant, ...(await tryMutant(attempt, seed, mutant)) });
    }
  })();
});
send({ type: "ready" });
