export { CustomResources, type CustomResourcesOptions } from './custom-resources.ts';
export { CheckedDefinition } from './definition/checked-definition.ts';
export { type ExportedDefinitions, exportDefinitions } from './exchange/export-definitions.ts';
export { type ImportedDefinitions, importDefinitions } from './exchange/import-definitions.ts';
