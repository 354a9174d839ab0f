import test from 'ava';
import { MutatingWebhookConfiguration, ValidatingWebhookConfiguration } from '../src/index.ts';
import { create, row } from './helpers/writes.ts';

const webhook = (fields: Record<string, unknown> = {}) => ({
  name: 'policy.example.com',
  clientConfig: { url: 'https://example.com/check' },
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }],
  ...fields,
});
const configuration = (...webhooks: unknown[]) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'policy' },
  webhooks,
});
const rule = (fields: Record<string, unknown>) => {
  const complete = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], ...fields };
  return webhook({ rules: [complete] });
};
const service = (fields: Record<string, unknown>) =>
  webhook({ clientConfig: { service: { namespace: 'default', name: 'hook', ...fields } } });
const url = (text: string) => webhook({ clientConfig: { url: text } });
const urlForm = '; desired format: https://host[/path]';
const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " +
  "end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

for (const [title, fields, messages] of [
  [
    'a short name',
    webhook({ name: 'policy' }),
    ['webhooks[0].name: Invalid value: "policy": should be a domain with at least three segments separated by dots'],
  ],
  ['no name', webhook({ name: '' }), ['webhooks[0].name: Required value']],
  [
    'no side effects',
    webhook({ sideEffects: undefined }),
    ['webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun'],
  ],
  [
    'side effects',
    webhook({ sideEffects: 'Some' }),
    ['webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
  ],
  [
    'a long timeout',
    webhook({ timeoutSeconds: 31 }),
    ['webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds'],
  ],
  [
    'unknown policies',
    webhook({ failurePolicy: 'Retry', matchPolicy: 'Loose' }),
    [
      'webhooks[0].failurePolicy: Unsupported value: "Retry": supported values: "Fail", "Ignore"',
      'webhooks[0].matchPolicy: Unsupported value: "Loose": supported values: "Equivalent", "Exact"',
    ],
  ],
  [
    'no review versions',
    webhook({ admissionReviewVersions: [] }),
    ['webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1'],
  ],
  [
    'unknown review versions',
    webhook({ admissionReviewVersions: ['v3', 'v3'] }),
    [
      'webhooks[0].admissionReviewVersions[1]: Invalid value: "v3": duplicate version',
      'webhooks[0].admissionReviewVersions: Invalid value: ["v3","v3"]: must include at least one of v1, v1beta1',
    ],
  ],
  [
    'an empty rule',
    webhook({ rules: [{}] }),
    [
      'webhooks[0].rules[0].operations: Required value',
      'webhooks[0].rules[0].apiGroups: Required value',
      'webhooks[0].rules[0].apiVersions: Required value',
      'webhooks[0].rules[0].resources: Required value',
    ],
  ],
  [
    'wildcards beside values',
    rule({ operations: ['*', 'CREATE'], apiGroups: ['*', ''], apiVersions: ['v1', '*'] }),
    [
      'webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: ' +
        "if '*' is present, must not specify other operations",
      `webhooks[0].rules[0].apiGroups: Invalid value: ["*",""]: if '*' is present, must not specify other API groups`,
      'webhooks[0].rules[0].apiVersions: Invalid value: ["v1","*"]: ' +
        "if '*' is present, must not specify other API versions",
    ],
  ],
  [
    'overlapping resources',
    rule({ resources: ['pods/*', 'pods/log', '*', 'services'] }),
    [
      `webhooks[0].rules[0].resources[1]: Invalid value: "pods/log": if 'pods/*' is present, must not specify pods/log`,
      'webhooks[0].rules[0].resources: Invalid value: ["pods/*","pods/log","*","services"]: ' +
        "if '*' is present, must not specify other resources without subresources",
    ],
  ],
  [
    'an unknown operation and scope',
    rule({ operations: ['PATCH'], scope: 'Node' }),
    [
      'webhooks[0].rules[0].operations[0]: Unsupported value: "PATCH": ' +
        'supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
      'webhooks[0].rules[0].scope: Unsupported value: "Node": supported values: "*", "Cluster", "Namespaced"',
    ],
  ],
  [
    'no address',
    webhook({ clientConfig: {} }),
    ['webhooks[0].clientConfig: Required value: exactly one of url or service is required'],
  ],
  [
    'plain HTTP',
    url('http://example.com'),
    [`webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme${urlForm}`],
  ],
  [
    'user, query and fragment',
    url('https://me@example.com/a?b=c#d'),
    [
      'webhooks[0].clientConfig.url: Invalid value: "me": user information is not permitted in the URL',
      'webhooks[0].clientConfig.url: Invalid value: "d": fragments are not permitted in the URL',
      'webhooks[0].clientConfig.url: Invalid value: "b=c": query parameters are not permitted in the URL',
    ],
  ],
  ['no host', url('https:///a'), [`webhooks[0].clientConfig.url: Invalid value: "": host must be specified${urlForm}`]],
  [
    'a service without names',
    service({ namespace: '', name: '', port: 70_000 }),
    [
      'webhooks[0].clientConfig.service.name: Required value',
      'webhooks[0].clientConfig.service.namespace: Required value',
      'webhooks[0].clientConfig.service.port: Invalid value: 70000: ' +
        'port is not valid: must be between 1 and 65535, inclusive',
    ],
  ],
  [
    'a path with an empty and a bad segment',
    service({ path: '/a//B_' }),
    [
      'webhooks[0].clientConfig.service.path: Invalid value: "/a//B_": segment[1] may not be empty',
      `webhooks[0].clientConfig.service.path: Invalid value: "/a//B_": segment[2]: ${subdomain}`,
    ],
  ],
  [
    'conditions',
    webhook({
      matchConditions: [
        { name: 'a', expression: ' ' },
        { name: '', expression: 'true' },
      ],
    }),
    [
      'webhooks[0].matchConditions[0].expression: Required value',
      'webhooks[0].matchConditions[1].name: Required value',
    ],
  ],
] as readonly [string, unknown, readonly string[]][]) {
  test(`a webhook with ${title} is invalid`, (t) => {
    t.deepEqual(create(ValidatingWebhookConfiguration, configuration(fields)).messages, messages);
  });
}

test('names of webhooks are unique within their configuration', (t) => {
  t.deepEqual(create(ValidatingWebhookConfiguration, configuration(webhook(), webhook())).messages, [
    'webhooks[1].name: Duplicate value: "policy.example.com"',
  ]);
});

test('webhooks have the defaults of Kubernetes', (t) => {
  const { object, messages } = create(MutatingWebhookConfiguration, {
    ...configuration(service({})),
    kind: 'MutatingWebhookConfiguration',
  });
  t.deepEqual(messages, []);
  t.deepEqual(object.webhooks, [
    {
      name: 'policy.example.com',
      clientConfig: { service: { namespace: 'default', name: 'hook', port: 443 } },
      rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], scope: '*' }],
      failurePolicy: 'Fail',
      matchPolicy: 'Equivalent',
      namespaceSelector: {},
      objectSelector: {},
      sideEffects: 'None',
      timeoutSeconds: 10,
      admissionReviewVersions: ['v1'],
      reinvocationPolicy: 'Never',
    },
  ]);
  t.is(row(MutatingWebhookConfiguration, object)['Webhooks'], 1);
});
