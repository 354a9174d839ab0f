import test from 'ava';
import { apiResourceList } from '../../src/discovery/api-resource-list.ts';
import { isStatusError } from '../../src/errors/status-error.ts';
import { defineKind } from '../../src/kind/define-kind.ts';
import { filled, optional, required, s } from '../../src/kind/schema.ts';
import type { VirtualCall } from '../../src/kind/virtual-kind.ts';
import type { Authorizer } from '../../src/meta/authorizer.ts';
import { fieldError } from '../../src/meta/field-error.ts';
import { internalContext } from '../../src/meta/request-context.ts';
import { openApiV3Document } from '../../src/openapi/open-api-document.ts';
import { createResourceRegistry } from '../../src/registry/create-registry.ts';
import type { ResourceService } from '../../src/registry/resource-service.ts';
import { FakeClock } from '../../src/runtime/fake-clock.ts';
import { silentLogger } from '../../src/runtime/logger.ts';

const schema = s.message('test.v1.Question', 'A question.', {
  spec: required(
    2,
    s.message('test.v1.QuestionSpec', 'What is asked.', { verb: required(1, s.string(), 'The verb.') }),
    'Spec.',
  ),
  status: filled(
    3,
    s.message('test.v1.QuestionStatus', 'The answer.', { allowed: optional(1, s.bool(), 'Whether.') }),
    'The answer.',
  ),
});

function question(scope: 'Cluster' | 'Namespaced', calls: VirtualCall[] = []) {
  return defineKind({
    group: 'test.example.com',
    version: 'v1',
    kind: 'Question',
    scope,
    schema,
    strategy: {
      validate: ({ spec }) =>
        spec.verb === 'shrug' ? [fieldError.invalid('spec.verb', 'shrug', 'must be a real verb')] : [],
    },
    virtual: {
      async create(object, call) {
        calls.push(call);
        const attributes = {
          verb: object.spec.verb,
          isResourceRequest: true,
          apiGroup: '',
          apiVersion: '',
          namespace: call.namespace ?? '',
          resource: 'pods',
          subresource: '',
          name: '',
          path: '',
        };
        const { allowed } = await call.authorizer.authorize(attributes, call.context.user);
        return { ...object, status: { allowed } };
      },
    },
  });
}

const getters: Authorizer = {
  authorize: ({ verb }) => ({ allowed: verb === 'get' }),
  rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
};

function serve(
  scope: 'Cluster' | 'Namespaced' = 'Cluster',
  authorizer?: Authorizer,
  calls?: VirtualCall[],
): ResourceService {
  const kind = question(scope, calls);
  const registry = createResourceRegistry({
    // Every use of a storage would be a mistake.
    storages: {
      forKind: () => {
        throw new Error('a virtual kind has no storage');
      },
    } as never,
    tokens: {} as never,
    clock: new FakeClock(),
    logger: silentLogger,
    admission: [
      {
        name: 'never',
        admit: () => {
          throw new Error('not asked');
        },
        validate: () => {
          throw new Error('not asked');
        },
      } as never,
    ],
    kinds: [kind],
    ...(authorizer ? { authorizer } : {}),
  });
  const service = registry.find({ group: kind.group, version: kind.version, resource: kind.names.plural });
  if (!service) throw new Error('not served');
  return service;
}

const strict = { dryRun: false, fieldValidation: 'Strict' } as const;

function ask(service: ResourceService, body: unknown, namespace?: string) {
  const bytes = Buffer.from(JSON.stringify(body));
  const context = internalContext({ user: { name: 'jane', groups: ['system:authenticated'] } });
  return service.create(context, namespace === undefined ? {} : { namespace }, { bytes, format: 'json' }, strict);
}

test('a question is answered by the authorizer of the server, completed and returned with 201', async (t) => {
  const service = serve('Cluster', getters);
  t.deepEqual(await ask(service, { spec: { verb: 'get' } }), {
    object: {
      apiVersion: 'test.example.com/v1',
      kind: 'Question',
      metadata: {},
      spec: { verb: 'get' },
      status: { allowed: true },
    },
    code: 201,
  });
  t.like(await ask(service, { spec: { verb: 'delete' } }), { object: { status: { allowed: false } } });
});

test('a registry without an authorizer allows only members of system:masters', async (t) => {
  const service = serve();
  t.like(await ask(service, { spec: { verb: 'get' } }), { object: { status: { allowed: false } } });
  const body = { bytes: Buffer.from('{"spec":{"verb":"get"}}'), format: 'json' } as const;
  t.like(await service.create(internalContext(), {}, body, strict), { object: { status: { allowed: true } } });
});

test('the namespace comes from the path and must not be contradicted', async (t) => {
  const calls: VirtualCall[] = [];
  const service = serve('Namespaced', getters, calls);
  t.like(await ask(service, { spec: { verb: 'get' } }, 'team'), { object: { metadata: { namespace: 'team' } } });
  t.is(calls.at(-1)?.namespace, 'team');
  const body = { metadata: { namespace: 'other' }, spec: { verb: 'get' } };
  await t.throwsAsync(ask(service, body, 'team'), { message: /does not match the namespace/ });
  await t.throwsAsync(ask(service, body), { message: /namespace/ });
});

test('bodies are decoded and validated as those of any kind', async (t) => {
  const calls: VirtualCall[] = [];
  const service = serve('Cluster', getters, calls);
  const refused = async (body: unknown, code: number, message: RegExp) => {
    const error = await t.throwsAsync(ask(service, body));
    t.true(isStatusError(error));
    t.is((error as unknown as { code: number }).code, code);
    t.regex(error?.message ?? '', message);
  };
  await refused({ spec: { verb: 'shrug' } }, 422, /spec\.verb: Invalid value: "shrug": must be a real verb/);
  await refused({ spec: {} }, 422, /spec\.verb: Required value/);
  await refused({ spec: { verb: 7 } }, 400, /expected string/);
  await refused({ spec: { verb: 'get', verbs: [] } }, 400, /unknown field "spec\.verbs"/);
  await refused({ kind: 'Pod', apiVersion: 'v1', spec: { verb: 'get' } }, 400, /no kind "Pod"/);
  t.deepEqual(calls, []);
});

test('every other verb is refused with 405', async (t) => {
  const service = serve();
  const context = internalContext();
  const operations = [
    service.get(context, { name: 'a' }, { export: false, exact: false, resourceVersion: '' }),
    service.list(context, {}, { resourceVersion: '' }),
    service.watch(context, {}, { resourceVersion: '' }),
    service.delete(context, { name: 'a' }, { dryRun: false }),
    service.patch(context, { name: 'a' }, { type: 'merge', bytes: Buffer.from('{}') }, strict),
  ];
  for (const operation of operations) await t.throwsAsync(operation, { message: /is not supported on resources/ });
});

test('discovery and OpenAPI show only create, and no storage version', (t) => {
  const kind = question('Cluster');
  const [resource] = apiResourceList([kind], kind)?.resources ?? [];
  t.deepEqual(resource?.verbs, ['create']);
  t.is(resource?.storageVersionHash, undefined);
  const { paths, components } = openApiV3Document(kind, [kind]);
  t.deepEqual(Object.keys(paths), ['/apis/test.example.com/v1/', '/apis/test.example.com/v1/questions']);
  t.deepEqual(Object.keys(paths['/apis/test.example.com/v1/questions'] ?? {}).sort(), ['parameters', 'post']);
  t.true(Object.keys(components.schemas).includes('v1.test.Question'));
  t.false(Object.keys(components.schemas).includes('v1.test.QuestionList'));
});

test('a virtual kind with anything that needs storage is a contradiction', (t) => {
  const declare = (options: object) => () =>
    defineKind({
      group: 'a.b',
      version: 'v1',
      kind: 'Thing',
      schema,
      virtual: { create: (object) => object },
      ...options,
    });
  t.notThrows(declare({}));
  t.throws(declare({ verbs: ['create', 'get'] }), { message: /the verbs of this virtual kind are create/ });
  const read = () => Promise.resolve([]);
  t.notThrows(declare({ virtual: { read } }));
  t.throws(declare({ virtual: { read }, verbs: ['watch'] }), {
    message: /the verbs of this virtual kind are get and list/,
  });
  t.throws(declare({ virtual: { read, create: (object: unknown) => object } }), { message: /one of the functions/ });
  t.throws(declare({ virtual: {} }), { message: /one of the functions/ });
  t.throws(declare({ subresources: [{ type: 'status', name: 'status' }] }), { message: /no subresources/ });
});
