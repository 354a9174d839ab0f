import { always, embedded, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const v1 = 'k8s.io.kube-aggregator.pkg.apis.apiregistration.v1';

const serviceReference = s.message(`${v1}.ServiceReference`, 'Address of a service.', {
  namespace: optional(1, s.string(), 'Namespace of the service.'),
  name: optional(2, s.string(), 'Name of the service.'),
  port: optional(3, s.int32(), 'Port of the service; 443 by default.', { presence: true }),
});
export interface ServiceReference extends Infer<typeof serviceReference> {}
export const ServiceReferenceSchema: Schema<ServiceReference> = serviceReference;

const apiServiceSpec = s.message(`${v1}.APIServiceSpec`, 'Which server serves a version of an API group.', {
  service: optional(1, ServiceReferenceSchema, 'Service of that server; absent for groups that this server serves.'),
  group: optional(2, s.string(), 'API group.'),
  version: optional(3, s.string(), 'Version of the group.'),
  insecureSkipTLSVerify: optional(4, s.bool(), 'Does not verify the certificate of the server.'),
  caBundle: optional(5, s.bytes(), 'Authorities of the certificate of the server, PEM.'),
  groupPriorityMinimum: always(7, s.int32(), 'Priority of the group; clients prefer groups with higher ones.'),
  versionPriority: always(8, s.int32(), 'Priority of the version in its group.'),
});
export interface APIServiceSpec extends Infer<typeof apiServiceSpec> {}
export const APIServiceSpecSchema: Schema<APIServiceSpec> = apiServiceSpec;

const apiServiceCondition = s.message(`${v1}.APIServiceCondition`, 'One observed condition of an API service.', {
  type: always(1, s.string(), 'Type of the condition.'),
  status: always(2, s.string(), 'Whether it holds: True, False or Unknown.'),
  lastTransitionTime: optional(3, s.time(), 'When status last changed.'),
  reason: optional(4, s.string(), 'One CamelCase word for why the status changed last.'),
  message: optional(5, s.string(), 'Text for people with the details of the last change.'),
});
export interface APIServiceCondition extends Infer<typeof apiServiceCondition> {}
export const APIServiceConditionSchema: Schema<APIServiceCondition> = apiServiceCondition;

const apiServiceStatus = s.message(`${v1}.APIServiceStatus`, 'Observed state of the server.', {
  conditions: optional(1, s.listByKey(APIServiceConditionSchema, 'type'), 'Latest observations.'),
});
export interface APIServiceStatus extends Infer<typeof apiServiceStatus> {}
export const APIServiceStatusSchema: Schema<APIServiceStatus> = apiServiceStatus;

const apiService = s.message(`${v1}.APIService`, 'A version of an API group, and the server that serves it.', {
  spec: embedded(2, APIServiceSpecSchema, 'The server.'),
  status: filled(3, APIServiceStatusSchema, 'Whether it is available.'),
});
export interface APIService extends KubeObject, Infer<typeof apiService> {}
export const APIServiceSchema: Schema<APIService> = apiService;
