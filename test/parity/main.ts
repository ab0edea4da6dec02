import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ParityReport, type ParityOptions } from "./parity-report.js";

type SuiteRunner = (directory: string, report: ParityReport, options: ParityOptions) => Promise<void>;

interface Suite {
  /** The fixtures' folder. */
  readonly folder: string;
  /** Loads what compares it; undefined where nothing does yet. Each takes what its `from` says. */
  readonly load?: () => Promise<SuiteRunner>;
  /** Whether the module is given the part's own folder (the default) or the one above. */
  readonly from?: "own folder" | "folder above";
}

/** Every part of the fixtures; a new one is a module in this folder and a line here. */
const suites: readonly Suite[] = [
  { folder: "models", load: async () => (await import("./models.js")).runModelsParity },
  { folder: "models", load: async () => (await import("./chat.js")).runTokenizerParity },
  { folder: "sampling", load: async () => (await import("./sampling.js")).runSamplingParity },
  { folder: "chat", load: async () => (await import("./chat.js")).runChatParity },
  { folder: "jinja", load: async () => (await import("./jinja.js")).runJinjaParity },
  { folder: "rl", load: async () => (await import("./rl.js")).runRlParity },
  {
    folder: "preferences",
    load: async () => (await import("./preferences.js")).runPreferenceParity,
  },
  { folder: "gym", load: async () => (await import("./gym.js")).runGymParity },
  { folder: "worlds", load: async () => (await import("./worlds.js")).runWorldsParity },
  { folder: "tinker", load: async () => (await import("./tinker.js")).runTinkerParity },
  { folder: "textworld", load: async () => (await import("./text-world.js")).runTextWorldParity, from: "folder above" },
];

const DEVICES = ["cpu", "webgpu"] as const;
const USAGE = "Usage: npm run parity -- DIR [--model PATH] [--device cpu|webgpu]";

async function main(): Promise<number> {
  const { directory, ...options } = readArguments();
  if (directory === undefined) return 1;
  const report = new ParityReport();
  for (const { folder, load, from = "own folder" } of suites) {
    const suiteFolder = join(directory, folder);
    if (!existsSync(suiteFolder)) report.skip(folder, `there is no ${suiteFolder}`);
    else if (load === undefined) report.skip(folder, "not supported yet");
    else await runSuite(report, folder, load, from === "own folder" ? suiteFolder : directory, options);
  }
  console.log(`${report.passed} passed, ${report.failed} failed`);
  return report.failed > 0 || report.passed === 0 ? 1 : 0;
}

/** A part that throws counts as one failure. */
async function runSuite(
  report: ParityReport,
  name: string,
  load: () => Promise<SuiteRunner>,
  directory: string,
  options: ParityOptions,
): Promise<void> {
  const before = report.passed + report.failed;
  try {
    await (
      await load()
    )(directory, report, options);
    if (report.passed + report.failed === before) report.skip(name, "no case ran");
  } catch (error) {
    report.error(name, error);
  }
}

function readArguments(): ParityOptions & { directory?: string } {
  const printUsageError = (message: string) => {
    console.error(`${message}\n${USAGE}`);
    return {};
  };
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { model: { type: "string" }, device: { type: "string", default: "cpu" } },
    });
    const [directory, ...others] = positionals;
    if (directory === undefined || others.length > 0)
      return printUsageError("Give the folder that holds the fixtures.");
    if (!existsSync(directory) || !statSync(directory).isDirectory())
      return printUsageError(
        `There is no folder ${directory}. Give the folder that holds models/, chat/, gym/ and so on.`,
      );
    if (values.model !== undefined && !existsSync(values.model))
      return printUsageError(`There is no model at ${values.model}.`);
    const device = DEVICES.find((each) => each === values.device);
    if (device === undefined)
      return printUsageError(`The device must be ${DEVICES.join(" or ")}, got ${values.device}.`);
    return { directory, model: values.model, device };
  } catch (error) {
    return printUsageError((error as Error).message);
  }
}

process.exitCode = await main();
