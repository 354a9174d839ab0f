export { CustomResources, type CustomResourcesOptions } from './custom-resources.ts';
export { CheckedDefinition } from './definition/checked-definition.ts';
