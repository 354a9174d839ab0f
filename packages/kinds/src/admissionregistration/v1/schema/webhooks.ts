import { always, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { failurePolicyField, matchConditionsField, RuleWithOperationsSchema, selectionFields } from './rules.ts';

const v1 = 'k8s.io.api.admissionregistration.v1';

const serviceReference = s.message(`${v1}.ServiceReference`, 'Address of a service.', {
  namespace: always(1, s.string(), 'Namespace of the service.'),
  name: always(2, s.string(), 'Name of the service.'),
  path: optional(3, s.string(), 'Path of requests.', { presence: true }),
  port: optional(4, s.int32(), 'Port of the service; 443 by default.', { presence: true }),
});
export interface ServiceReference extends Infer<typeof serviceReference> {}
export const ServiceReferenceSchema: Schema<ServiceReference> = serviceReference;

const clientConfig = s.message(`${v1}.WebhookClientConfig`, 'Address of a webhook: url or service.', {
  url: optional(3, s.string(), 'https address.', { presence: true }),
  service: optional(1, ServiceReferenceSchema, 'Service of this cluster.'),
  caBundle: optional(2, s.bytes(), 'Authorities of the certificate of the webhook, PEM; default: those of the system.'),
});
export interface WebhookClientConfig extends Infer<typeof clientConfig> {}
export const WebhookClientConfigSchema: Schema<WebhookClientConfig> = clientConfig;

/** Fields of validating and mutating webhooks. Protobuf field numbers that differ are arguments. */
const webhookFields = (objectSelectorNumber: number) =>
  ({
    name: always(1, s.string(), 'Full name of the webhook, such as policy.example.com.'),
    clientConfig: always(2, WebhookClientConfigSchema, 'How the webhook is called.'),
    rules: optional(3, s.list(RuleWithOperationsSchema, { listType: 'atomic' }), 'Requests that the webhook examines.'),
    failurePolicy: failurePolicyField,
    ...selectionFields({ namespaceSelector: 5, objectSelector: objectSelectorNumber, matchPolicy: 9 }),
    sideEffects: optional(
      6,
      s.string({ values: ['None', 'NoneOnDryRun', 'Some', 'Unknown'] }),
      'None or NoneOnDryRun.',
      { presence: true },
    ),
    timeoutSeconds: optional(7, s.int32(), 'Timeout of a call; 10 by default, at most 30.', { presence: true }),
    admissionReviewVersions: always(
      8,
      s.list(s.string(), { listType: 'atomic' }),
      'Versions of AdmissionReview that the webhook accepts, the preferred one first.',
    ),
  }) as const;

const validatingWebhook = s.message(`${v1}.ValidatingWebhook`, 'A webhook that accepts or denies requests.', {
  ...webhookFields(10),
  matchConditions: matchConditionsField(11),
});
export interface ValidatingWebhook extends Infer<typeof validatingWebhook> {}
export const ValidatingWebhookSchema: Schema<ValidatingWebhook> = validatingWebhook;

const mutatingWebhook = s.message(`${v1}.MutatingWebhook`, 'A webhook that may change objects.', {
  ...webhookFields(11),
  reinvocationPolicy: optional(10, s.string(), 'Never or IfNeeded: whether it is called again after later changes.', {
    presence: true,
  }),
  matchConditions: matchConditionsField(12),
});
export interface MutatingWebhook extends Infer<typeof mutatingWebhook> {}
export const MutatingWebhookSchema: Schema<MutatingWebhook> = mutatingWebhook;

const validatingConfiguration = s.message(
  `${v1}.ValidatingWebhookConfiguration`,
  'Webhooks that accept or deny requests.',
  { webhooks: optional(2, s.listByKey(ValidatingWebhookSchema, 'name'), 'The webhooks.') },
);
export interface ValidatingWebhookConfiguration extends KubeObject, Infer<typeof validatingConfiguration> {}
export const ValidatingWebhookConfigurationSchema: Schema<ValidatingWebhookConfiguration> = validatingConfiguration;

const mutatingConfiguration = s.message(`${v1}.MutatingWebhookConfiguration`, 'Webhooks that may change objects.', {
  webhooks: optional(2, s.listByKey(MutatingWebhookSchema, 'name'), 'The webhooks.'),
});
export interface MutatingWebhookConfiguration extends KubeObject, Infer<typeof mutatingConfiguration> {}
export const MutatingWebhookConfigurationSchema: Schema<MutatingWebhookConfiguration> = mutatingConfiguration;
