import type { KindDefinition } from '@keelson/core';
import { ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } from './admissionregistration/v1/policies.ts';
import {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
} from './admissionregistration/v1/webhook-configurations.ts';
import {
  CustomResourceDefinition,
  type CustomResourceDefinitionVersion,
} from './apiextensions/v1/custom-resource-definition.ts';
import { APIService } from './apiregistration/v1/api-service.ts';
import { ControllerRevision } from './apps/v1/controller-revision.ts';
import { DaemonSet } from './apps/v1/daemon-set.ts';
import { Deployment } from './apps/v1/deployment.ts';
import { ReplicaSet } from './apps/v1/replica-set.ts';
import { StatefulSet } from './apps/v1/stateful-set.ts';
import { AppsV1beta1ControllerRevision, AppsV1beta1Deployment, AppsV1beta1StatefulSet } from './apps/v1beta1/kinds.ts';
import {
  AppsV1beta2ControllerRevision,
  AppsV1beta2DaemonSet,
  AppsV1beta2Deployment,
  AppsV1beta2ReplicaSet,
  AppsV1beta2StatefulSet,
} from './apps/v1beta2/kinds.ts';
import { SelfSubjectReview, TokenReview } from './authentication/v1/reviews.ts';
import { AuthenticationV1beta1TokenReview } from './authentication/v1beta1/reviews.ts';
import {
  LocalSubjectAccessReview,
  SelfSubjectAccessReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
} from './authorization/v1/reviews.ts';
import {
  AuthorizationV1beta1LocalSubjectAccessReview,
  AuthorizationV1beta1SelfSubjectAccessReview,
  AuthorizationV1beta1SelfSubjectRulesReview,
  AuthorizationV1beta1SubjectAccessReview,
} from './authorization/v1beta1/reviews.ts';
import { AutoscalingV1HorizontalPodAutoscaler } from './autoscaling/v1/horizontal-pod-autoscaler.ts';
import { HorizontalPodAutoscaler } from './autoscaling/v2/horizontal-pod-autoscaler.ts';
import { CronJob } from './batch/v1/cron-job.ts';
import { Job } from './batch/v1/job.ts';
import { CertificateSigningRequest } from './certificates/v1/certificate-signing-request.ts';
import { Lease } from './coordination/v1/lease.ts';
import { ConfigMap } from './core/v1/config-map.ts';
import { Endpoints } from './core/v1/endpoints.ts';
import { Event } from './core/v1/event.ts';
import { LimitRange } from './core/v1/limit-range.ts';
import { Namespace } from './core/v1/namespace.ts';
import { Node } from './core/v1/node.ts';
import { PersistentVolume } from './core/v1/persistent-volume.ts';
import { PersistentVolumeClaim } from './core/v1/persistent-volume-claim.ts';
import { Binding } from './core/v1/pod/binding.ts';
import { Pod } from './core/v1/pod.ts';
import { PodTemplate } from './core/v1/pod-template.ts';
import { ReplicationController } from './core/v1/replication-controller.ts';
import { ResourceQuota } from './core/v1/resource-quota.ts';
import { Secret } from './core/v1/secret.ts';
import { Service } from './core/v1/service.ts';
import { ServiceAccount } from './core/v1/service-account.ts';
import { EndpointSlice } from './discovery/v1/endpoint-slice.ts';
import { EventsV1Event } from './events/v1/event.ts';
import { ExtensionsV1beta1DaemonSet } from './extensions/v1beta1/daemon-set.ts';
import { ExtensionsV1beta1Deployment } from './extensions/v1beta1/deployment.ts';
import { Ingress } from './extensions/v1beta1/ingress.ts';
import { ExtensionsV1beta1ReplicaSet } from './extensions/v1beta1/replica-set.ts';
import { FlowSchema } from './flowcontrol/v1/flow-schema.ts';
import { PriorityLevelConfiguration } from './flowcontrol/v1/priority-level-configuration.ts';
import { NetworkingV1Ingress } from './networking/v1/ingress.ts';
import { IngressClass } from './networking/v1/ingress-class.ts';
import { NetworkPolicy } from './networking/v1/network-policy.ts';
import { IPAddress, ServiceCIDR } from './networking/v1/service-networks.ts';
import { RuntimeClass } from './node/v1/runtime-class.ts';
import { PodDisruptionBudget } from './policy/v1/pod-disruption-budget.ts';
import { ClusterRoleBinding, RoleBinding } from './rbac/v1/bindings.ts';
import { ClusterRole, Role } from './rbac/v1/roles.ts';
import {
  RbacV1beta1ClusterRole,
  RbacV1beta1ClusterRoleBinding,
  RbacV1beta1Role,
  RbacV1beta1RoleBinding,
} from './rbac/v1beta1/kinds.ts';
import { PriorityClass, systemPriorityClasses } from './scheduling/v1/priority-class.ts';
import { CSIDriver } from './storage/v1/csi-driver.ts';
import { CSINode } from './storage/v1/csi-node.ts';
import { CSIStorageCapacity } from './storage/v1/csi-storage-capacity.ts';
import { isDefaultStorageClass, StorageClass } from './storage/v1/storage-class.ts';
import { VolumeAttachment } from './storage/v1/volume-attachment.ts';

export type * as policiesV1 from './admissionregistration/v1/schema/policies.ts';
export type { MatchCondition, RuleWithOperations } from './admissionregistration/v1/schema/rules.ts';
/**
 * Every built-in kind. The first version of a kind is the one clients prefer, so apps/v1 stands before
 * extensions/v1beta1.
 */
/** Types of the messages inside objects, by group and version: `coreV1.PodSpec`. */
export type * as webhooksV1 from './admissionregistration/v1/schema/webhooks.ts';
export { checkClientConfig } from './admissionregistration/v1/webhook-configurations.ts';
export type { JsonSchemaProps, ValidationRule } from './apiextensions/v1/json-schema-props.ts';
export type * as apiregistrationV1 from './apiregistration/v1/schema.ts';
export type * as appsV1 from './apps/v1/schema/index.ts';
export { type TokenRequest, TokenRequestSchema } from './authentication/v1/schema/index.ts';
export type * as autoscalingV1 from './autoscaling/v1/schema/index.ts';
export { type Scale, ScaleSchema } from './autoscaling/v1/schema/index.ts';
export type * as autoscalingV2 from './autoscaling/v2/schema/index.ts';
export { nextTime } from './batch/schedule/next-time.ts';
export { parseSchedule, type Schedule, ScheduleError } from './batch/schedule/parse-schedule.ts';
export { offsetOf } from './batch/schedule/time-zone.ts';
export type * as batchV1 from './batch/v1/schema/index.ts';
export { hasCondition } from './certificates/v1/conditions.ts';
export type * as certificatesV1 from './certificates/v1/schema/index.ts';
export type * as coordinationV1 from './coordination/v1/schema/index.ts';
export { type ComponentStatus, componentStatusKind } from './core/v1/component-status.ts';
export { matchesNodeTerm, type NodeFacts, tolerates, untoleratedTaint } from './core/v1/node/node-rules.ts';
export { volumeReaches, volumesFor } from './core/v1/persistent-volume/match-claim.ts';
export { type QosClass, qosClassOf } from './core/v1/pod/resources.ts';
export { podGracePeriod } from './core/v1/pod.ts';
export type * as coreV1 from './core/v1/schema/index.ts';
export type {
  Container,
  ContainerStatus,
  PodCondition,
  PodSpec,
  PodStatus,
  PodTemplateSpec,
  ServicePort,
  Taint,
  Volume,
} from './core/v1/schema/index.ts';
export type * as discoveryV1 from './discovery/v1/schema.ts';
export type * as eventsV1 from './events/v1/schema/index.ts';
export type * as extensionsV1beta1 from './extensions/v1beta1/schema/index.ts';
export type { DeploymentRollback, Scale as ExtensionsV1beta1Scale } from './extensions/v1beta1/schema/index.ts';
export {
  autoupdateSpecAnnotation,
  defaultFlowSchemas,
  defaultPriorityLevels,
} from './flowcontrol/v1/default-objects.ts';
export type * as flowcontrolV1 from './flowcontrol/v1/schema.ts';
export { metricsKinds, NodeMetrics, PodMetrics } from './metrics/v1beta1/kinds.ts';
export type * as metricsV1beta1 from './metrics/v1beta1/schema.ts';
export type * as networkingV1 from './networking/v1/schema/index.ts';
export {
  addressFamilyLabel,
  addressManagerLabel,
  serviceAddressManager,
  serviceCidrReady,
} from './networking/v1/service-networks.ts';
export type * as nodeV1 from './node/v1/schema.ts';
export type * as policyV1 from './policy/v1/schema/index.ts';
export type { Eviction } from './policy/v1/schema/index.ts';
export type * as rbacV1 from './rbac/v1/schema/index.ts';
export type { PolicyRule, RoleRef, Subject } from './rbac/v1/schema/index.ts';
export type * as schedulingV1 from './scheduling/v1/schema.ts';
export type * as storageV1 from './storage/v1/schema.ts';
export { standardAddress } from './validation/parse-address.ts';
export { isExtendedResource } from './validation/resource-names.ts';
export { autoscalingScale, autoscalingScaleOf, scaleMetadata } from './workload/scale.ts';
export type { CustomResourceDefinitionVersion };
export {
  APIService,
  AppsV1beta1ControllerRevision,
  AppsV1beta1Deployment,
  AppsV1beta1StatefulSet,
  AppsV1beta2ControllerRevision,
  AppsV1beta2DaemonSet,
  AppsV1beta2Deployment,
  AppsV1beta2ReplicaSet,
  AppsV1beta2StatefulSet,
  AuthenticationV1beta1TokenReview,
  AuthorizationV1beta1LocalSubjectAccessReview,
  AuthorizationV1beta1SelfSubjectAccessReview,
  AuthorizationV1beta1SelfSubjectRulesReview,
  AuthorizationV1beta1SubjectAccessReview,
  AutoscalingV1HorizontalPodAutoscaler,
  Binding,
  CertificateSigningRequest,
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  ControllerRevision,
  CronJob,
  CSIDriver,
  CSINode,
  CSIStorageCapacity,
  CustomResourceDefinition,
  DaemonSet,
  Deployment,
  EndpointSlice,
  Endpoints,
  Event,
  EventsV1Event,
  ExtensionsV1beta1DaemonSet,
  ExtensionsV1beta1Deployment,
  ExtensionsV1beta1ReplicaSet,
  FlowSchema,
  HorizontalPodAutoscaler,
  Ingress,
  IngressClass,
  IPAddress,
  isDefaultStorageClass,
  Job,
  Lease,
  LimitRange,
  LocalSubjectAccessReview,
  MutatingWebhookConfiguration,
  Namespace,
  NetworkingV1Ingress,
  NetworkPolicy,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  PodTemplate,
  PriorityClass,
  PriorityLevelConfiguration,
  RbacV1beta1ClusterRole,
  RbacV1beta1ClusterRoleBinding,
  RbacV1beta1Role,
  RbacV1beta1RoleBinding,
  ReplicaSet,
  ReplicationController,
  ResourceQuota,
  Role,
  RoleBinding,
  RuntimeClass,
  Secret,
  SelfSubjectAccessReview,
  SelfSubjectReview,
  SelfSubjectRulesReview,
  Service,
  ServiceAccount,
  ServiceCIDR,
  StatefulSet,
  StorageClass,
  SubjectAccessReview,
  systemPriorityClasses,
  TokenReview,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
  ValidatingWebhookConfiguration,
  VolumeAttachment,
};

export const builtinKinds: readonly KindDefinition[] = [
  Binding,
  ConfigMap,
  Endpoints,
  Event,
  LimitRange,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodTemplate,
  ReplicationController,
  ResourceQuota,
  Secret,
  Service,
  ServiceAccount,
  ControllerRevision,
  DaemonSet,
  Deployment,
  ReplicaSet,
  StatefulSet,
  HorizontalPodAutoscaler,
  AutoscalingV1HorizontalPodAutoscaler,
  CronJob,
  Job,
  CertificateSigningRequest,
  CustomResourceDefinition,
  APIService,
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
  Lease,
  EndpointSlice,
  EventsV1Event,
  FlowSchema,
  PriorityLevelConfiguration,
  NetworkingV1Ingress,
  IngressClass,
  IPAddress,
  NetworkPolicy,
  ServiceCIDR,
  RuntimeClass,
  PodDisruptionBudget,
  ClusterRole,
  ClusterRoleBinding,
  Role,
  RoleBinding,
  RbacV1beta1ClusterRole,
  RbacV1beta1ClusterRoleBinding,
  RbacV1beta1Role,
  RbacV1beta1RoleBinding,
  PriorityClass,
  CSIDriver,
  CSINode,
  CSIStorageCapacity,
  StorageClass,
  VolumeAttachment,
  SelfSubjectReview,
  TokenReview,
  AuthenticationV1beta1TokenReview,
  LocalSubjectAccessReview,
  SelfSubjectAccessReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
  AuthorizationV1beta1LocalSubjectAccessReview,
  AuthorizationV1beta1SelfSubjectAccessReview,
  AuthorizationV1beta1SelfSubjectRulesReview,
  AuthorizationV1beta1SubjectAccessReview,
  AppsV1beta2ControllerRevision,
  AppsV1beta2DaemonSet,
  AppsV1beta2Deployment,
  AppsV1beta2ReplicaSet,
  AppsV1beta2StatefulSet,
  AppsV1beta1ControllerRevision,
  AppsV1beta1Deployment,
  AppsV1beta1StatefulSet,
  ExtensionsV1beta1DaemonSet,
  ExtensionsV1beta1Deployment,
  ExtensionsV1beta1ReplicaSet,
  Ingress,
];
export { storageClassOf } from './validation/volumes.ts';
