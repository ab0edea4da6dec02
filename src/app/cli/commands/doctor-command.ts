import { boolean } from "../../../core/settings.js";
import { diagnostics, type Diagnostic } from "../diagnostics.js";
import { formatTable } from "../display/format-table.js";
import { defineCommand } from "../options/define-command.js";

export const doctorCommand = defineCommand({
  name: "doctor",
  description:
    "Checks devices, memory, cache, network and versions of this machine. Fails if llamagym cannot run on it.",
  options: { json: boolean({ description: "Print one JSON object." }) },
  run: async ({ json }, reporter) => {
    const results = await diagnostics();
    reporter.print(json === true ? JSON.stringify({ findings: results }) : formatDiagnostics(results));
    return results.some(({ state }) => state === "broken") ? 1 : 0;
  },
});

const STATE_LABELS = { ok: "ok", note: "-", missing: "missing", broken: "BROKEN" } as const;

function formatDiagnostics(results: readonly Diagnostic[]): string {
  const advice = results.flatMap(({ name, advice }) => (advice === undefined ? [] : [`${name}: ${advice}`]));
  return [
    formatTable(results.map(({ state, name, value }) => [STATE_LABELS[state], name, value])),
    ...(advice.length > 0 ? ["", ...advice] : []),
  ].join("\n");
}
