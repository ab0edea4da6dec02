export {
  type ExportDtype,
  type ExportFormat,
  type ExportOptions,
  checkExportFolder,
  resolveExportDtype,
} from "./export-model.js";
