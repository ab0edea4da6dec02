import type { Report } from "./framework.js";

/** Four significant digits, bytes as GB. */
function formatFigure(value: number | undefined, unit: string): string {
  if (value === undefined) return "-";
  const scaled = unit === "bytes" ? value / 1e9 : value;
  return Math.abs(scaled) >= 1000
    ? Math.round(scaled).toLocaleString("en-US")
    : Number(scaled.toPrecision(4)).toString();
}

/** Lines of cells, columns aligned: the first to the left, the others to the right. */
function align(rows: string[][]): string {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows
    .map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join("  "))
    .join("\n");
}

/**
 * The report as text: the machine, a line for each figure with ours and the peers', and what was
 * not measured.
 */
export function formatReport(report: Report, description: string): string {
  const { cpu, cores, memory_gb, node, os } = report.machine;
  const peers = Object.keys(report.peers);
  const rows = [["", "unit", "ours", ...peers, "ratio"]];
  const names = new Set([report.ours, ...Object.values(report.peers)].flatMap((figures) => Object.keys(figures)));
  const measured = Object.keys(report.units);
  const others = [...names].filter((name) => !(name in report.units)).sort();
  for (const name of [...measured, ...others]) {
    const unit = report.units[name] ?? "";
    const ratio = name in report.ratios ? `${report.ratios[name].toFixed(2)} x` : "";
    const peerCells = peers.map((peer) => formatFigure(report.peers[peer][name], unit));
    rows.push([name, unit === "bytes" ? "GB" : unit, formatFigure(report.ours[name], unit), ...peerCells, ratio]);
  }
  const machine = `${cpu}, ${cores} cores, ${memory_gb} GB, Node ${node}, ${os}`;
  const legend = "Medians; a ratio above 1 is better for us, for times and memory too.";
  return [`${report.name}: ${description}`, machine, "", align(rows), "", legend, ...report.notes].join("\n");
}
