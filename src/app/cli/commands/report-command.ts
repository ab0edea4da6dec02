import { defineSettings, text } from "../../../core/settings.js";
import { writeFileAtomic } from "../../../core/files/write-file-atomic.js";
import { renderReport } from "../../dashboard/report.js";
import { defineCommand } from "../options/define-command.js";

export const reportCommand = defineCommand({
  name: "report",
  description: "Writes the dashboard's views of runs or sweeps into one HTML file, which opens without a server.",
  examples: [
    { description: "A run to mail", args: "report runs/blackjack --output report.html" },
    { description: "Several runs to compare", args: "report runs/a runs/b" },
  ],
  positionals: [
    { name: "RUN", description: "Folder of a run or sweep; several may be given.", required: true, repeated: true },
  ],
  options: defineSettings({
    output: text({ short: "o", default: "report.html", valueName: "file.html", description: "File to write." }),
  }),
  run: async ({ output = "report.html" }, reporter, folders) => {
    const html = await renderReport(folders);
    await writeFileAtomic(output, html);
    reporter.print(`Saved ${output} (${(html.length / 1e6).toFixed(1)} MB).`);
    return 0;
  },
});
