import type { SettingTable } from "../../../core/settings.js";
import { listChangeable } from "../../runs/open-run.js";
import { toOptionName } from "./option-names.js";
import { UsageError } from "./usage-error.js";

/**
 * Checks that a resumed run is given no option that it would ignore; `settings` are the settings of
 * the run.
 * @throws UsageError
 */
export function checkResumeOptions(
  given: Readonly<Record<string, unknown>>,
  commandOptions: SettingTable,
  settings: SettingTable,
  env?: string,
): void {
  const changeable = listChangeable({ ...commandOptions, ...settings });
  const disallowed = Object.keys(given).find((name) => given[name] !== undefined && !changeable.includes(name));
  if (env === undefined && disallowed === undefined) return;
  const [kept, left] = env === undefined ? [`--${toOptionName(disallowed!)}`, "it"] : ["environment", `"${env}"`];
  throw new UsageError(
    `A resumed run keeps its ${kept}. Leave ${left} out; --resume can be combined with ` +
      `${listChangeable(settings)
        .map((name) => `--${toOptionName(name)}`)
        .join(", ")}.`,
  );
}
