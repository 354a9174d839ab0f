export type { IndexedAdmission, IndexedAdmissionOptions } from './admission/indexed-admission.ts';
export { AggregatedApis, type AggregatedApisOptions, type FrontProxyIdentity } from './aggregation/aggregated-apis.ts';
export { LocalApiServices, type LocalApiServicesOptions } from './aggregation/local-api-services.ts';
export * from './cel/index.ts';
/** @experimental */
export {
  CheckedDefinition,
  CustomResources,
  type CustomResourcesOptions,
  type ExportedDefinitions,
  exportDefinitions,
  type ImportedDefinitions,
  importDefinitions,
} from './custom-resources/index.ts';
export { admissionPolicies } from './policies/policy-admission.ts';
export { type KnownKinds, policyTypeChecking } from './policies/type-checking.ts';
export { type ResolveService, type ServiceAddress, serviceResolver } from './services/resolve-service.ts';
export { type AdmissionWebhooksOptions, admissionWebhooks } from './webhooks/webhook-admission.ts';
