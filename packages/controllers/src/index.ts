export { CertificateController, type CertificateControllerOptions } from './certificates/certificate-controller.ts';
export type { CertificateOrder, CertificateSigner } from './certificates/certificate-signer.ts';
export type { ControllerOptions } from './controller-options.ts';
export { GarbageCollector } from './garbage/garbage-collector.ts';
export { NamespaceController } from './namespace/namespace-controller.ts';
export { NamespaceDefaults, type NamespaceDefaultsOptions } from './namespace/namespace-defaults.ts';
export { PodGarbageCollector, type PodGarbageCollectorOptions } from './pods/pod-garbage-collector.ts';
export { ClusterRoleAggregation } from './roles/cluster-role-aggregation.ts';
export {
  type AddressKind,
  type ServiceAddressClaim,
  type ServiceAddressOwner,
  type ServiceAddressRecords,
  ServiceAddressRepair,
  type ServiceAddressRepairOptions,
} from './service-addresses/service-address-repair.ts';
export { workloadControllers } from './workload-controllers.ts';
