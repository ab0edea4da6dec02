import { defineSettings, text, type SettingTable } from "../../../core/settings.js";
import { listChangeable } from "../../runs/open-run.js";
import { dashboardOption } from "../train-run.js";
import { toOptionName } from "./option-names.js";

/**
 * Returns the options of a command for its run folder. `contents` says what the folder holds,
 * `settings` are the settings of the run, and `moved` names the files that may lie elsewhere when
 * it is resumed.
 */
export function runFolderOptions(
  command: string,
  settings: SettingTable,
  { contents, moved }: { readonly contents: string; readonly moved: string },
) {
  return defineSettings(
    {
      output: text({
        short: "o",
        valueName: "folder",
        defaultText: `runs/${command}-TIME`,
        description: `Run folder: ${contents}.`,
      }),
      resume: text({
        valueName: "folder",
        changeable: "resume",
        description: `Resume the run in this folder. Only these settings may change: ${listChangeable(settings).map(toOptionName).join(", ")}; ${moved} may have moved, but not changed.`,
      }),
      dashboard: dashboardOption,
    },
    { group: "Run", common: true },
  );
}

/** Options of a command whose run trains on files of examples. */
export function exampleRunOptions(command: string, settings: SettingTable) {
  return runFolderOptions(command, settings, {
    contents: "settings, metrics, checkpoints and the result",
    moved: "the files of data and evalData",
  });
}
