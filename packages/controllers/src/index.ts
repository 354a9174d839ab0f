export { certificateController } from './certificates/certificate-controller.ts';
export type { CertificateOrder, CertificateSigner } from './certificates/certificate-signer.ts';
export type { ControllerOptions } from './controller-options.ts';
/** @public */
export { disruptionConditions } from './disruption/conditions.ts';
export { disruptionController } from './disruption/disruption-controller.ts';
export { GarbageCollector } from './garbage/garbage-collector.ts';
export type { OtherApis } from './namespace/empty-namespace.ts';
export { namespaceController } from './namespace/namespace-controller.ts';
export { namespaceDefaults } from './namespace/namespace-defaults.ts';
export { podGarbageCollector } from './pods/pod-garbage-collector.ts';
/** @public */
export { type Amounts, addAmounts, amountOf, increases, negated, podAmounts } from './quota/amounts.ts';
export { resourceQuotaController } from './quota/resource-quota-controller.ts';
/** @public */
export { scopesOf, type UsageOfKind, usageOfKind } from './quota/usage.ts';
export { clusterRoleAggregation } from './roles/cluster-role-aggregation.ts';
export { type TokenAccount, type TokenSecretsOptions, tokenSecrets } from './service-accounts/token-secrets.ts';
export {
  type AddressKind,
  type ServiceAddressClaim,
  type ServiceAddressOwner,
  type ServiceAddressRecords,
  ServiceAddressRepair,
  type ServiceAddressRepairOptions,
} from './service-addresses/service-address-repair.ts';
export { serviceCidrController } from './service-addresses/service-cidr-controller.ts';
export { storageProtection } from './volumes/storage-protection.ts';
export { workloadControllers } from './workload-controllers.ts';
