import { EMBEDDED_MODEL } from "../../../models/index.js";
import { boolean, defineSettings, text, type GivenSettings } from "../../../core/settings.js";
import { checkTinkerService, type ServiceTraits } from "../../../tinker/index.js";
import { formatTable } from "../display/format-table.js";
import { defineCommand } from "../options/define-command.js";
import { UsageError } from "../options/usage-error.js";
import type { Reporter } from "../reporter.js";

const options = defineSettings(
  {
    model: text({
      short: "m",
      valueName: "name",
      description: "Model of the service to check with. Default: the first that it lists.",
    }),
    json: boolean({ description: "Print one JSON object." }),
  },
  { group: "Check", common: true },
);

export const tinkerCommand = defineCommand({
  name: "tinker",
  description: "Checks what a Tinker service computes: losses, reduction, bounds, prompt log-probabilities.",
  examples: [{ description: "Check a service on this machine", args: "tinker check http://127.0.0.1:8000" }],
  positionals: [
    { name: "check", description: "The one thing that this command does.", required: true },
    { name: "URL", description: "Address of the service. Its key comes from TINKER_API_KEY.", required: true },
  ],
  options,
  run: async (args, reporter, [action, url]) => {
    if (action !== "check") throw new UsageError(`llamagym tinker has no ${action}: it is llamagym tinker check URL.`);
    return check(url, args, reporter);
  },
});

async function check(url: string, { model, json }: GivenSettings<typeof options>, reporter: Reporter): Promise<number> {
  const checked = await checkTinkerService(url, { model, onWarning: reporter.warn });
  reporter.print(json === true ? JSON.stringify(checked) : formatTraits(url, checked));
  return 0;
}

function formatTraits(
  url: string,
  { model, models, ...traits }: Awaited<ReturnType<typeof checkTinkerService>>,
): string {
  const rows = [
    ["models", models.join(", ") || "not listed"],
    ["checked with", model === EMBEDDED_MODEL ? "embedded" : model],
    ["reduction of losses", describeReduction(traits)],
    ["losses", ["cross_entropy", ...traits.losses].join(", ")],
    ["bounds of ppo", describeBounds(traits.ppoBounds, traits.clipSettings?.includes("ppo"))],
    ["bounds of cispo", describeBounds(traits.cispoBounds, traits.clipSettings?.includes("cispo"))],
    ["targets of a position", traits.severalTargets === "one" ? "one" : `several, ${traits.severalTargets}`],
    ["metrics of a pass", traits.metrics.join(", ") || "none"],
    ["prompt log-probabilities", traits.hasPromptLogProbs ? "yes" : "no: choices and beta above 0 are not possible"],
    [
      "sampling against training",
      traits.samplingError === undefined ? "unknown" : `at most ${traits.samplingError.toExponential(1)} apart`,
    ],
  ];
  return [`The service at ${url}`, "", formatTable(rows, [])].join("\n");
}

function describeReduction({ reduction }: ServiceTraits): string {
  if (reduction === "sum") return "sum over tokens";
  if (reduction === "mean") return "mean over tokens and sequences; training corrects it";
  return "unknown, because it reports no norm of gradients; gradients may be scaled, so set maxGradNorm with care";
}

function describeBounds(bounds: readonly [number, number] | undefined, isSettable = false): string {
  if (bounds === undefined) return "unknown";
  return `${bounds.map((bound) => bound.toFixed(3)).join(" to ")}, ${isSettable ? "or as set" : "fixed"}`;
}
