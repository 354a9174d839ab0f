import { isStatusError, type KubeObject, type StatusError } from '@keelson/core';
import {
  ConfigMap,
  Deployment,
  Namespace,
  type policiesV1,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from '@keelson/kinds';
import { until } from '@keelson/test-support';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { type ControlPlane, createControlPlane, type Listening } from '../../src/index.ts';

interface Shared {
  readonly plane: ControlPlane;
  readonly listening: Listening;
}
const test = anyTest as TestFn<Shared>;

test.before(async (t) => {
  const plane = await createControlPlane({ controllers: false });
  const listening = await plane.listen();
  t.context = Object.assign(t.context, { plane, listening });
});
test.after.always((t) => t.context.plane?.close());

const namespace = 'default';
const rule = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] };
const configMaps = { ...rule, apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] };

type PolicySpec = policiesV1.ValidatingAdmissionPolicySpec;
type BindingSpec = policiesV1.ValidatingAdmissionPolicyBindingSpec;

/** Installs a policy for objects with the label `test: LABEL`, and waits until it is in force. */
async function install(
  { context: { plane } }: ExecutionContext<Shared>,
  label: string,
  spec: PolicySpec,
  binding: BindingSpec = {},
): Promise<void> {
  const matchConstraints = {
    resourceRules: [configMaps],
    objectSelector: { matchLabels: { test: label } },
    ...spec.matchConstraints,
  };
  const bindingSpec = { policyName: label, validationActions: ['Deny'], ...binding };
  await plane.client(ValidatingAdmissionPolicyBinding).create({ metadata: { name: `${label}-b` }, spec: bindingSpec });
  await plane
    .client(ValidatingAdmissionPolicy)
    .create({ metadata: { name: label }, spec: { ...spec, matchConstraints } });
  await probe(plane, label);
}

/** Policies reach a server in the order of their creation: a later one that denies proves the earlier one. */
async function probe(plane: ControlPlane, label: string): Promise<void> {
  const name = `${label}-probe`;
  const objectSelector = { matchLabels: { probe: label } };
  const bindingSpec = { policyName: name, validationActions: ['Deny'] };
  await plane.client(ValidatingAdmissionPolicyBinding).create({ metadata: { name }, spec: bindingSpec });
  await plane.client(ValidatingAdmissionPolicy).create({
    metadata: { name },
    spec: {
      matchConstraints: { resourceRules: [configMaps], objectSelector },
      validations: [{ expression: 'false' }],
    },
  });
  const labels = { probe: label };
  await until(async () => {
    const config = { metadata: { name, namespace, labels } } as ConfigMap;
    return plane
      .client(ConfigMap)
      .namespace(namespace)
      .create(config, { dryRun: true })
      .then(
        () => false,
        (error: unknown) => isStatusError(error, 'Invalid'),
      );
  });
}

const configMap = (label: string, data: Record<string, string> = {}, name = `${label}-x`) =>
  ({ metadata: { name, namespace, labels: { test: label } }, data }) as ConfigMap;

async function denied(t: ExecutionContext, write: Promise<unknown>): Promise<StatusError> {
  const error = await t.throwsAsync(write);
  if (!isStatusError(error)) throw error;
  return error;
}

const prefix = (label: string) => `ValidatingAdmissionPolicy '${label}' with binding '${label}-b' denied request:`;

test('a request that violates a policy is denied with the message of Kubernetes', async (t) => {
  await install(t, 'plain', { validations: [{ expression: "object.data.level != 'high'" }] });
  const maps = t.context.plane.client(ConfigMap).namespace(namespace);
  const { status } = await denied(t, maps.create(configMap('plain', { level: 'high' })));
  const text = `${prefix('plain')} failed expression: object.data.level != 'high'`;
  t.like(status, { code: 422, reason: 'Invalid', message: `configmaps "plain-x" is forbidden: ${text}` });
  t.deepEqual(status.details, { name: 'plain-x', kind: 'configmaps', causes: [{ message: text }] });
  await maps.create(configMap('plain', { level: 'low' }));
  const changed = configMap('plain', { level: 'high' });
  t.is((await denied(t, maps.update(changed))).code, 422);
});

test('messages, reasons, variables and old objects', async (t) => {
  await install(t, 'rich', {
    variables: [
      { name: 'size', expression: 'object.data.size()' },
      { name: 'tooMany', expression: 'variables.size > 2' },
    ],
    validations: [
      {
        expression: '!variables.tooMany',
        message: 'too many keys',
        messageExpression: "'has ' + string(variables.size) + ' keys, from ' + request.userInfo.username",
        reason: 'Forbidden',
      },
      { expression: 'oldObject == null || oldObject.data.id == object.data.id', message: 'id is immutable' },
    ],
  });
  const maps = t.context.plane.client(ConfigMap).namespace(namespace);
  const many = await denied(t, maps.create(configMap('rich', { a: '', b: '', c: '' })));
  t.like(many.status, { code: 403, reason: 'Forbidden' });
  t.regex(many.message, /denied request: has 3 keys, from system:apiserver$/);
  await maps.create(configMap('rich', { id: '1' }));
  t.regex((await denied(t, maps.update(configMap('rich', { id: '2' })))).message, /denied request: id is immutable$/);
});

test('a failed evaluation follows the failure policy', async (t) => {
  const validations = [{ expression: "object.data.missing == 'x'" }];
  await install(t, 'fails', { validations });
  await install(t, 'ignores', { validations, failurePolicy: 'Ignore' });
  const maps = t.context.plane.client(ConfigMap).namespace(namespace);
  const { message } = await denied(t, maps.create(configMap('fails', { a: 'b' })));
  const why = `expression 'object.data.missing == 'x'' resulted in error: no such key: missing`;
  t.true(message.endsWith(`${prefix('fails')} ${why}`), message);
  await t.notThrowsAsync(maps.create(configMap('ignores', { a: 'b' })));
});

test('match conditions and excluded resources leave requests out', async (t) => {
  await install(t, 'left-out', {
    matchConditions: [{ name: 'not-exempt', expression: "!has(object.data.exempt) || object.data.exempt != 'yes'" }],
    matchConstraints: { excludeResourceRules: [{ ...configMaps, resourceNames: ['spared'] }] },
    validations: [{ expression: 'false' }],
  });
  const maps = t.context.plane.client(ConfigMap).namespace(namespace);
  await denied(t, maps.create(configMap('left-out', { a: 'b' })));
  await t.notThrowsAsync(maps.create(configMap('left-out', { exempt: 'yes' })));
  await t.notThrowsAsync(maps.create(configMap('left-out', {}, 'spared')));
});

test('bindings select by namespace, and may warn or annotate instead of denying', async (t) => {
  const { plane, listening } = t.context;
  await plane.client(Namespace).create({ metadata: { name: 'strict', labels: { level: 'strict' } } } as Namespace);
  await install(
    t,
    'warns',
    {
      validations: [{ expression: "namespaceObject.metadata.labels.level == 'lax'", message: 'not lax' }],
      auditAnnotations: [{ key: 'level', valueExpression: 'namespaceObject.metadata.labels.level' }],
    },
    {
      validationActions: ['Warn', 'Audit'],
      matchResources: { namespaceSelector: { matchLabels: { level: 'strict' } } },
    },
  );
  const post = (where: string) =>
    fetch(`${listening.url}/api/v1/namespaces/${where}/configmaps`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ metadata: { name: 'warned', labels: { test: 'warns' } } }),
    });
  const warned = await post('strict');
  t.is(warned.status, 201);
  t.is(
    warned.headers.get('warning'),
    `299 - "Validation failed for ValidatingAdmissionPolicy 'warns' with binding 'warns-b': not lax"`,
  );
  const silent = await post(namespace);
  t.is(silent.status, 201);
  t.is(silent.headers.get('warning'), null);
});

test('parameters come from objects that bindings name or select', async (t) => {
  const { plane } = t.context;
  const maps = plane.client(ConfigMap).namespace(namespace);
  await maps.create({ metadata: { name: 'limit', namespace }, data: { max: '1' } } as ConfigMap);
  const paramKind = { apiVersion: 'v1', kind: 'ConfigMap' };
  const size = '(has(object.data) ? object.data.size() : 0)';
  const validations = [{ expression: `params == null || ${size} <= int(params.data.max)`, message: 'too large' }];
  await install(
    t,
    'named',
    { paramKind, validations },
    { paramRef: { name: 'limit', parameterNotFoundAction: 'Deny' } },
  );
  t.regex((await denied(t, maps.create(configMap('named', { a: '', b: '' })))).message, /denied request: too large$/);
  await t.notThrowsAsync(maps.create(configMap('named', { a: '' })));
  const selector = { matchLabels: { purpose: 'limit' } };
  await install(t, 'chosen', { paramKind, validations }, { paramRef: { selector, parameterNotFoundAction: 'Deny' } });
  const missing = await denied(t, maps.create(configMap('chosen', {})));
  const why = 'failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction';
  t.true(missing.message.endsWith(`${prefix('chosen')} ${why}`), missing.message);
  await maps.create({
    metadata: { name: 'l2', namespace, labels: { purpose: 'limit' } },
    data: { max: '0' },
  } as ConfigMap);
  t.regex((await denied(t, maps.create(configMap('chosen', { a: '' })))).message, /denied request: too large$/);
  await t.notThrowsAsync(maps.create(configMap('chosen', {})));
  const unknown = { apiVersion: 'example.com/v1', kind: 'Limit' };
  await install(
    t,
    'unknown',
    { paramKind: unknown, validations },
    { paramRef: { name: 'x', parameterNotFoundAction: 'Deny' } },
  );
  t.regex(
    (await denied(t, maps.create(configMap('unknown')))).message,
    /failed to find resource referenced by paramKind/,
  );
});

test('expressions can ask the authorizer', async (t) => {
  await install(t, 'asks', {
    validations: [
      { expression: "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()" },
      {
        expression:
          "!authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').namespace('default').check('get').allowed()",
      },
      { expression: "authorizer.requestResource.check('create').allowed()" },
    ],
  });
  await t.notThrowsAsync(t.context.plane.client(ConfigMap).namespace(namespace).create(configMap('asks')));
});

test('a policy for one version of a kind examines requests of the others', async (t) => {
  await install(t, 'versions', {
    matchConstraints: {
      resourceRules: [{ ...rule, apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'] }],
    },
    validations: [{ expression: "object.apiVersion == 'apps/v1' && object.spec.replicas <= 2", message: 'at most 2' }],
  });
  const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const spec = { replicas: 3, selector: { matchLabels: { a: 'b' } }, template };
  const metadata = { name: 'd', namespace, labels: { test: 'versions' } };
  const direct = t.context.plane
    .client(Deployment)
    .namespace(namespace)
    .create({ metadata, spec } as Deployment);
  t.regex((await denied(t, direct)).message, /^deployments\.apps "d" is forbidden: .* denied request: at most 2$/);
  const response = await fetch(`${t.context.listening.url}/apis/extensions/v1beta1/namespaces/default/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ apiVersion: 'extensions/v1beta1', kind: 'Deployment', metadata, spec }),
  });
  t.is(response.status, 422);
});

test('expressions are checked when a policy is written, with the errors of each', async (t) => {
  const policies = t.context.plane.client(ValidatingAdmissionPolicy);
  const policy = (spec: PolicySpec) => ({
    metadata: { name: 'wrong' },
    spec: { matchConstraints: { resourceRules: [configMaps] }, ...spec },
  });
  const wrong = policy({
    variables: [{ name: 'a', expression: 'nothing' }],
    matchConditions: [{ name: 'c', expression: 'variables.a' }],
    validations: [
      { expression: '1 +' },
      { expression: "'x'", messageExpression: 'authorizer' },
      { expression: 'params' },
    ],
    auditAnnotations: [{ key: 'k', valueExpression: '1' }],
  });
  const { status } = await denied(t, policies.create(wrong));
  t.is(status.code, 422);
  const causes = status.details?.causes?.map(({ field, message }) => `${field}: ${message?.split('\n')[0]}`) ?? [];
  const undeclared = (name: string) =>
    `compilation failed: ERROR: <input>:1:1: undeclared reference to '${name}' (in container '')`;
  const operand =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
  t.deepEqual(causes, [
    `spec.matchConditions[0].expression: Invalid value: "variables.a": ${undeclared('variables')}`,
    `spec.variables[0].expression: Invalid value: "nothing": ${undeclared('nothing')}`,
    `spec.validations[0].expression: Invalid value: "1 +": compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting ${operand}`,
    `spec.validations[1].expression: Invalid value: "'x'": must evaluate to bool but got string`,
    `spec.validations[1].messageExpression: Invalid value: "authorizer": ${undeclared('authorizer')}`,
    `spec.validations[2].expression: Invalid value: "params": ${undeclared('params')}`,
    `spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type] but got int`,
  ]);
});

test('an expression that costs too much denies within the limits of time', async (t) => {
  await install(t, 'costly', {
    validations: [{ expression: 'object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != "x")))' }],
  });
  const data = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`k${i}`, 'v']));
  const write = t.context.plane.client(ConfigMap).namespace(namespace).create(configMap('costly', data));
  t.regex(
    (await denied(t, write)).message,
    /resulted in error: operation (?:cancelled: actual cost limit exceeded|interrupted)$/,
  );
});

test('policies never examine policies, and end with their binding', async (t) => {
  const { plane } = t.context;
  await install(t, 'all', {
    matchConstraints: { resourceRules: [rule], objectSelector: {} },
    matchConditions: [{ name: 'only', expression: "has(object.metadata.labels) && 'ends' in object.metadata.labels" }],
    validations: [{ expression: 'false', message: 'none' }],
  });
  const object = { metadata: { name: 'ends', namespace, labels: { ends: '' } } } as ConfigMap;
  const maps = plane.client(ConfigMap).namespace(namespace);
  await denied(t, maps.create(object));
  const exempt = {
    metadata: { name: 'ends', labels: { ends: '' } },
    spec: { policyName: 'none', validationActions: ['Deny'] },
  };
  await t.notThrowsAsync(plane.client<KubeObject>(ValidatingAdmissionPolicyBinding).create(exempt as KubeObject));
  await plane.client(ValidatingAdmissionPolicyBinding).delete('all-b');
  await until(() =>
    maps.create(object).then(
      () => true,
      () => false,
    ),
  );
  t.pass();
});

test('the status of a policy states what is wrong with the types of its expressions', async (t) => {
  const plane = await createControlPlane({ controllers: ['validatingadmissionpolicy-status-controller'] });
  t.teardown(() => plane.close());
  const policies = plane.client(ValidatingAdmissionPolicy);
  const resourceRules = [{ ...configMaps, apiGroups: ['apps'], resources: ['deployments'] }];
  const spec = { matchConstraints: { resourceRules }, validations: [{ expression: 'object.replicas > 1' }] };
  const created = await policies.create({ metadata: { name: 'typed' }, spec });
  const seen = async (generation: number | undefined) =>
    (await policies.get('typed')).status?.observedGeneration === generation;
  await until(() => seen(created.metadata.generation));
  const { status } = await policies.get('typed');
  const warning = "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'";
  t.deepEqual(
    status?.typeChecking?.expressionWarnings?.map((one) => [one.fieldRef, one.warning.split('\n')[0]]),
    [['spec.validations[0].expression', warning]],
  );
  const validations = [{ expression: 'object.spec.replicas > 1' }];
  const corrected = await policies.update({ ...(await policies.get('typed')), spec: { ...spec, validations } });
  await until(() => seen(corrected.metadata.generation));
  t.deepEqual((await policies.get('typed')).status?.typeChecking, {});
});
