import { boolean, defineSettings, integer, text } from "../../../core/settings.js";
import { startDashboard } from "../../dashboard/server.js";
import { defineCommand } from "../options/define-command.js";
import { openBrowser } from "../open-browser.js";

export const dashboardCommand = defineCommand({
  name: "dashboard",
  description:
    "Serves a page that shows runs while they train: curves, episodes, tokens, groups, comparison, play and control.",
  examples: [
    { description: "Show the runs in runs/", args: "dashboard --open" },
    { description: "Runs of another folder, on a fixed port", args: "dashboard experiments --port 8080" },
  ],
  positionals: [{ name: "RUNS", description: "Folder of runs, or one run. Default runs.", required: false }],
  options: defineSettings({
    port: integer({ min: 0, max: 65_535, default: 6007, description: "Port; 0 picks a free one." }),
    host: text({
      default: "127.0.0.1",
      valueName: "address",
      description: "Address to listen on. Others than 127.0.0.1 let other machines with the link in.",
    }),
    allowFiles: boolean({
      description:
        "Play runs whose config.json names files: model folders and options of environments. For runs that you made.",
    }),
    open: boolean({ description: "Open the page in the browser." }),
  }),
  run: async ({ port = 6007, host, allowFiles, open = false }, reporter, [runs = "runs"]) => {
    const interrupts = reporter.handleInterrupts();
    const { signal } = interrupts;
    // The training process that started this one has ended.
    process.on("disconnect", interrupts.interrupt);
    const dashboard = await startDashboard({ runs, port, host, allowFiles });
    reporter.print(`Dashboard of ${runs}: ${dashboard.url}`);
    if (!process.connected) reporter.info("The link contains the token of this dashboard. Ctrl-C stops it.");
    if (open) openBrowser(dashboard.url);
    if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    await dashboard.close();
    return 0;
  },
});
