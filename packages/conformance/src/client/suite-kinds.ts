import {
  defineKind,
  embedded,
  fieldError,
  filled,
  type KindDefinition,
  type KubeObject,
  optional,
  required,
  s,
  statusErrors,
} from '@keelson/core';

const group = 'suite.keelson.dev';

const portSchema = s.message('dev.keelson.suite.Port', 'A port.', {
  name: required(1, s.string(), 'Name.'),
  number: required(2, s.int32({ minimum: 1, maximum: 65535 }), 'Number.'),
});

const partSpec = s.message('dev.keelson.suite.PartSpec', 'Wish.', {
  replicas: optional(1, s.int32(), 'How many.', { default: 1, presence: true }),
  colour: optional(2, s.enum('red', 'green', 'blue'), 'Colour.'),
  ports: optional(3, s.listByKey(portSchema, 'name'), 'Ports.'),
  settings: optional(4, s.map(s.string()), 'Settings.'),
});

const partStatus = s.message('dev.keelson.suite.PartStatus', 'Report.', {
  phase: optional(1, s.string(), 'Phase.'),
  replicas: optional(2, s.int32(), 'Running.'),
});

const bodyMeta = s.message('dev.keelson.suite.BodyMeta', 'Metadata.', {
  name: optional(1, s.string(), 'Name.'),
  namespace: optional(2, s.string(), 'Namespace.'),
  uid: optional(3, s.string(), 'UID.'),
  resourceVersion: optional(4, s.string(), 'Version.'),
});

const bodyType = {
  kind: optional(undefined, s.string(), 'Kind.', { jsonOnly: true }),
  apiVersion: optional(undefined, s.string(), 'Version.', { jsonOnly: true }),
  metadata: optional(1, bodyMeta, 'Metadata.'),
};

const countSchema = s.message('dev.keelson.suite.Count', 'How many parts.', {
  ...bodyType,
  spec: optional(
    2,
    s.message('dev.keelson.suite.CountSpec', 'Wish.', { replicas: optional(1, s.int32(), 'Number.') }),
    'Wish.',
  ),
});

const coatSchema = s.message('dev.keelson.suite.Coat', 'A new colour.', {
  ...bodyType,
  colour: required(2, s.string(), 'Colour.'),
});

const partSchema = (version: string) =>
  s.message(`dev.keelson.suite.${version}.Part`, 'A part.', {
    spec: embedded(2, partSpec, 'Wish.'),
    status: filled(3, partStatus, 'Report.'),
  });

/** A namespaced kind with a status, a projection (`count`), an action (`coat`), a selectable field and a generation. */
export const Part = defineKind({
  group,
  version: 'v1',
  kind: 'Part',
  schema: partSchema('v1'),
  strategy: {
    generation: 'spec',
    validate: ({ spec }) =>
      (spec.replicas ?? 0) < 0
        ? [fieldError.invalid('spec.replicas', spec.replicas, 'must be greater than or equal to 0')]
        : [],
    warnings: ({ spec }) => (spec.colour === 'green' ? ['green fades in the "sun"'] : []),
  },
  selectableFields: [['spec.colour', ({ spec }) => spec.colour ?? '']],
  subresources: [
    { type: 'status', name: 'status' },
    {
      type: 'projection',
      name: 'count',
      bodyKind: { group, version: 'v1', kind: 'Count' },
      schema: countSchema,
      read: ({ metadata, spec }) => ({
        kind: 'Count',
        apiVersion: `${group}/v1`,
        metadata: {
          name: metadata.name,
          namespace: metadata.namespace,
          uid: metadata.uid,
          resourceVersion: metadata.resourceVersion,
        },
        spec: { replicas: spec.replicas },
      }),
      write: (part, body) => {
        const replicas = body.spec?.replicas ?? 0;
        if (replicas < 0) {
          throw statusErrors.invalid({ group, kind: 'Count' }, part.metadata.name, [
            fieldError.invalid('spec.replicas', replicas, 'must be greater than or equal to 0'),
          ]);
        }
        part.spec.replicas = replicas;
      },
    },
    {
      type: 'action',
      name: 'coat',
      bodyKind: { group, version: 'v1', kind: 'Coat' },
      schema: coatSchema,
      run: async ({ parent, body, dryRun }) => ({
        code: 201,
        object: await parent.update(
          (part) => {
            part.spec.colour = body.colour;
          },
          { dryRun },
        ),
      }),
    },
  ],
});

const relabelled = (object: KubeObject, apiVersion: string): KubeObject => ({ ...object, apiVersion });

/** The same objects as `Part`, in an older API group. */
export const OldPart = defineKind({
  group: `old.${group}`,
  version: 'v1beta1',
  kind: 'Part',
  schema: partSchema('v1beta1'),
  strategy: { generation: 'spec' },
  subresources: [{ type: 'status', name: 'status' }],
  storage: {
    kind: Part,
    toStorage: (object) => relabelled(object, `${group}/v1`),
    fromStorage: (stored) => relabelled(stored, `old.${group}/v1beta1`) as never,
    isRelabel: () => true,
  },
});

/** A cluster-scoped kind. */
export const Zone = defineKind({
  group,
  version: 'v1',
  kind: 'Zone',
  scope: 'Cluster',
  schema: s.message('dev.keelson.suite.Zone', 'A zone.', {
    spec: embedded(
      2,
      s.message('dev.keelson.suite.ZoneSpec', 'Wish.', { area: optional(1, s.string(), 'Area.') }),
      'Wish.',
    ),
  }),
});

/** A part as clients write and read it. */
export interface PartObject extends KubeObject {
  spec?: {
    replicas?: number;
    colour?: string;
    ports?: { name: string; number: number }[];
    settings?: Record<string, string>;
  };
  status?: { phase?: string; replicas?: number };
}

/** The kinds that a server must serve for the client suite. */
export const clientSuiteKinds: readonly KindDefinition[] = [Part, OldPart, Zone];
