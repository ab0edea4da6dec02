import { ALGORITHM_NAMES, algorithms } from "../../src/rl/algorithms/algorithms.js";
import type { Setting, SettingTable } from "../../src/core/settings.js";
import { resolveTrainConfig, runSettings, type TrainOptions } from "../../src/app/runs/run-settings.js";

const HEAD = ["setting", "default", "embedded", "choices", "what it does", "source"];

type Values = Readonly<Record<string, unknown>>;

/**
 * Every setting of a run as rows of cells, under the headings that docs/training.md has for them.
 */
export function buildSettingsTables(): ReadonlyMap<string, readonly (readonly string[])[]> {
  const tables = new Map([["Of the run", buildRows(runSettings, {})]]);
  for (const algorithm of ALGORITHM_NAMES)
    tables.set(`Of \`${algorithm}\``, buildRows(algorithms[algorithm].settings, { algorithm }));
  return tables;
}

/** The same as Markdown. */
export function renderSettingsMarkdown(): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [...buildSettingsTables()]
    .map(([title, [head, ...rows]]) =>
      [`### ${title}`, "", line(head), line(head.map(() => "---")), ...rows.map(line), ""].join("\n"),
    )
    .join("\n");
}

function buildRows(table: SettingTable, options: Partial<TrainOptions>): string[][] {
  const defaults: Values = { ...resolveTrainConfig({ env: "x", model: "other", ...options }) };
  const embedded: Values = { ...resolveTrainConfig({ env: "x", ...options }) };
  const choices: Values = {
    ...resolveTrainConfig({ env: "x", model: "other", actionMode: "choices", ...options }),
    // Given, not a default.
    actionMode: defaults.actionMode,
  };
  const rows = Object.entries(table).map(([name, setting]) => {
    // The length of a run and its model are decided together with others.
    const value = name === "model" || name === "episodes" ? setting.default : defaults[name];
    const embeddedValue = name === "model" || name === "episodes" ? value : embedded[name];
    const choiceValue = name === "model" || name === "episodes" ? value : choices[name];
    return [
      `\`${name}\``,
      formatValue(value),
      embeddedValue === value ? "" : formatValue(embeddedValue),
      choiceValue === value ? "" : formatValue(choiceValue),
      describeSetting(setting),
      setting.source ?? "ours",
    ];
  });
  return [HEAD, ...rows];
}

function describeSetting(setting: Setting): string {
  const { description } = setting;
  const choices =
    "choices" in setting ? ` Choices: ${setting.choices.map((choice) => `\`${choice}\``).join(", ")}.` : "";
  return `${description}${choices}`.replaceAll("|", "\\|");
}

function formatValue(value: unknown): string {
  return value === undefined || value === "" ? "" : `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}
