import { readFile } from "node:fs/promises";
import { afterAll, describe, expect, it, vi } from "vitest";
import { demosCommand } from "../src/app/cli/commands/demos-command.js";
import { evalCommand } from "../src/app/cli/commands/eval-command.js";
import { gatewayCommand } from "../src/app/cli/commands/gateway-command.js";
import { playCommand } from "../src/app/cli/commands/play-command.js";
import { sweepCommand } from "../src/app/cli/commands/sweep-command.js";
import { trainCommand } from "../src/app/cli/commands/train-command.js";
import type { Command } from "../src/app/cli/options/define-command.js";
import { createSetup } from "../src/app/distributed/run-setup.js";
import { gatewayRunSettingsOf } from "../src/app/runs/gateway-run.js";
import { makeTextAgent, readTextEnv } from "../src/app/runs/make-text-agent.js";
import { resolveTrainConfig } from "../src/app/runs/run-settings.js";
import type { SettingTable } from "../src/core/settings.js";
import type * as Settings from "../src/core/settings.js";
import { make } from "../src/envs.js";
import { buildSettingsTables } from "./support/settings-table.js";
import { TrainableModels } from "./support/trainable.js";

/** Made-up settings, each with a setting in whose table it is another row. */
const { neighbors } = vi.hoisted(() => ({
  neighbors: {
    madeUpAgent: "maxContextLength",
    madeUpEnv: "maxEpisodeSteps",
    madeUpRun: "saveSteps",
    madeUpAlgorithm: "maxResamples",
  },
}));

vi.mock("../src/core/settings.js", async (importOriginal) => {
  const original = await importOriginal<typeof Settings>();
  const waiting = new Map(Object.entries(neighbors));
  // Only where the neighbor is declared, which is before its table becomes a part of others.
  const addRows = (table: SettingTable): SettingTable => {
    const added = [...waiting].filter(([, neighbor]) => Object.hasOwn(table, neighbor)).map(([name]) => name);
    for (const name of added) waiting.delete(name);
    const setting = original.integer({ default: 5, min: 0, description: "Made up." });
    return { ...table, ...Object.fromEntries(added.map((name) => [name, setting])) };
  };
  return {
    ...original,
    defineSettings: (table: SettingTable, shared = {}) => original.defineSettings(addRows(table), shared),
  };
});

const models = new TrainableModels();
afterAll(async () => models.close());

const given = { madeUpAgent: 6, madeUpEnv: 7, madeUpRun: 8, madeUpAlgorithm: 9 };
const config = () => resolveTrainConfig({ env: "Blackjack-v1", algorithm: "grpo", ...given });

async function listOptions(command: Command): Promise<readonly string[]> {
  const { options } = await command.help([]);
  return Object.keys(options).filter((name) => Object.hasOwn(neighbors, name));
}

describe("a setting that is a row of one table", () => {
  it("is an option of the commands that it concerns", async () => {
    const all = ["madeUpAgent", "madeUpAlgorithm", "madeUpEnv", "madeUpRun"];
    expect((await listOptions(trainCommand)).toSorted()).toEqual(all);
    expect((await listOptions(sweepCommand)).toSorted()).toEqual(all);
    for (const command of [evalCommand, playCommand, demosCommand])
      expect((await listOptions(command)).toSorted()).toEqual(["madeUpAgent", "madeUpEnv"]);
    expect((await listOptions(gatewayCommand)).toSorted()).toEqual(["madeUpAlgorithm", "madeUpRun"]);
  });

  it("is resolved with its default, and validated", () => {
    expect(config()).toMatchObject(given);
    const defaults = { madeUpAgent: 5, madeUpEnv: 5, madeUpRun: 5, madeUpAlgorithm: 5 };
    expect(resolveTrainConfig({ env: "x", algorithm: "grpo" })).toMatchObject(defaults);
    for (const name of Object.keys(neighbors))
      expect(() => resolveTrainConfig({ env: "x", algorithm: "grpo", [name]: -1 })).toThrow(
        `\`${name}\` must be an integer >= 0, got -1.`,
      );
  });

  it("reaches agents and workers, if it concerns them", async () => {
    const model = await models.open();
    const agent = makeTextAgent(model, await readTextEnv(make("Blackjack-v1"), "Blackjack-v1"), {
      ...config(),
      sftWarmStart: undefined,
    });
    expect(agent.settings.prompt).toMatchObject({ madeUpAgent: 6 });
    const setup = JSON.parse(await createSetup(config(), model)) as { settings: object };
    expect(setup.settings).toMatchObject({ madeUpAgent: 6, madeUpEnv: 7 });
    expect(setup.settings).not.toHaveProperty("madeUpRun");
  });

  it("reaches a gateway, unless it concerns environments or the agent", () => {
    const settings = gatewayRunSettingsOf("grpo");
    expect(Object.keys(settings).filter((name) => Object.hasOwn(neighbors, name))).toEqual([
      "madeUpAlgorithm",
      "madeUpRun",
    ]);
  });

  it("has a row in the documentation", () => {
    const tables = buildSettingsTables();
    const names = (title: string) => tables.get(title)!.map(([name]) => name);
    for (const name of ["madeUpAgent", "madeUpEnv", "madeUpRun"]) expect(names("Of the run")).toContain(`\`${name}\``);
    expect(names("Of `grpo`")).toContain("`madeUpAlgorithm`");
  });
});

describe("a setting in the package's declarations", () => {
  it.each([
    ["generation/generation-options.d.ts", ["policySamplingSettings", "plainSettings"]],
    [
      "rl/rollout/rollout-settings.d.ts",
      ["completionSettings", "promptSettings", "rewardSettings", "callSettings", "invalidActionSettings"],
    ],
    ["rl/agent/agent-settings.d.ts", ["ownAgentSettings", "textAgentSettings"]],
    ["rl/train/trainer-settings.d.ts", ["evaluationSettings", "loopSettings", "trainerSettings"]],
    ["app/gateway/gateway-settings.d.ts", ["ownGatewaySettings"]],
  ])("has the documentation that editors show for the options derived from %s", async (path, tables) => {
    const text = await readFile(new URL(`../dist/${path}`, import.meta.url), "utf8");
    for (const table of tables) {
      // A table that spreads one of another file loses its comments there.
      const [, rows] = new RegExp(`const ${table}: \\{\n([^]*?)\n\\};`).exec(text)!;
      const declared = Array.from(rows.matchAll(/^(.*\*\/\n)? {4}readonly (\w+): /gm));
      expect(declared.length).toBeGreaterThan(0);
      const undocumented = declared.filter(([, comment]) => comment === undefined).map(([, , name]) => name);
      expect({ table, undocumented }).toEqual({ table, undocumented: [] });
    }
  });
});
