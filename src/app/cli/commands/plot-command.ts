import { defineSettings, text } from "../../../core/settings.js";
import { writeFileAtomic } from "../../../core/files/write-file-atomic.js";
import { readRunCurves } from "../../runs/run-curve.js";
import { renderTextChart } from "../../tracking/charts/text-chart.js";
import { renderLearningCurve } from "../../tracking/index.js";
import { defineCommand } from "../options/define-command.js";

export const plotCommand = defineCommand({
  name: "plot",
  description: "Draws the learning curves of runs over each other, in the terminal or as an SVG.",
  examples: [
    { description: "Look at a run", args: "plot runs/blackjack" },
    {
      description: "Compare the KL divergence of two runs",
      args: "plot runs/a runs/b --metric objective/kl -o kl.svg",
    },
  ],
  positionals: [{ name: "RUN", description: "Folder of a run; several may be given.", required: true, repeated: true }],
  options: defineSettings({
    metric: text({
      short: "m",
      valueName: "name",
      defaultText: "rollout/ep_rew_mean, or sft/loss for fine-tuning",
      description: "Metric of metrics.jsonl (docs/metrics.md).",
    }),
    output: text({ short: "o", valueName: "file.svg", description: "SVG file to write instead of a chart in text." }),
  }),
  run: async ({ metric, output }, reporter, folders) => {
    const curve = await readRunCurves(folders, metric);
    if (output === undefined) reporter.print(renderTextChart(curve, process.stdout.columns));
    else {
      await writeFileAtomic(output, renderLearningCurve(curve));
      reporter.print(`Saved ${output}.`);
    }
    return 0;
  },
});
