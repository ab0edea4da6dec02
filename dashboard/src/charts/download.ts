import { renderLearningCurve, type LearningCurve } from "../../../src/app/tracking/charts/learning-curve.js";

/** Format of a chart's file. */
export type ChartFormat = "svg" | "png" | "csv";

/** Pixels of a PNG per unit of its SVG. */
const PNG_SCALE = 2;

/** Downloads a chart in the format of the learning curves that runs write. */
export async function downloadChart(curve: LearningCurve, format: ChartFormat): Promise<void> {
  const name = curve.title.replaceAll(/[^\w.-]+/g, "-");
  const text = format === "csv" ? renderCsv(curve) : renderLearningCurve(curve);
  const type = format === "csv" ? "text/csv" : "image/svg+xml";
  const blob = new Blob([text], { type });
  saveBlob(format === "png" ? await rasterize(blob) : blob, `${name}.${format}`);
}

/** A row per value: series, x and y. */
function renderCsv({ xLabel, yLabel, series }: LearningCurve): string {
  const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;
  const rows = series.flatMap(({ name, x, y }) =>
    x.map((value, i) => `${quote(name)},${value},${Number.isFinite(y[i]) ? y[i] : ""}`),
  );
  return [`run,${quote(xLabel)},${quote(yLabel)}`, ...rows, ""].join("\n");
}

async function rasterize(svg: Blob): Promise<Blob> {
  const url = URL.createObjectURL(svg);
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth * PNG_SCALE;
    canvas.height = image.naturalHeight * PNG_SCALE;
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture is too large."))), "image/png");
    });
  } finally {
    URL.revokeObjectURL(url);
  }
}

function saveBlob(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The download has its own reference after the click has been handled.
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
