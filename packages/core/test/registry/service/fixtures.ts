import {
  always,
  defineKind,
  embedded,
  fieldError,
  filled,
  type KubeObject,
  optional,
  required,
  s,
  statusErrors,
} from '@keelson/core';

const port = s.message('example.Port', 'A port.', {
  name: optional(1, s.string(), 'Name.'),
  number: required(2, s.int32({ minimum: 1, maximum: 65535 }), 'Number.'),
});

const gadgetSpec = s.message('example.GadgetSpec', 'Wish.', {
  replicas: optional(1, s.int32({ minimum: 0 }), 'How many.', { default: 1 }),
  colour: optional(2, s.enum('red', 'green', 'blue'), 'Colour.'),
  ports: optional(3, s.listByKey(port, 'name'), 'Ports.'),
  settings: optional(4, s.map(s.string()), 'Settings.'),
  paused: optional(5, s.bool(), 'Paused.'),
  size: optional(6, s.quantity(), 'Size.'),
  extra: optional(7, s.raw(), 'Anything.'),
  graceSeconds: optional(8, s.int64(), 'Grace period.'),
  selector: optional(9, s.map(s.string()), 'Selector.'),
});

const scaleSchema = s.message('example.Scale', 'Scale.', {
  kind: optional(undefined, s.string(), 'Kind.', { jsonOnly: true }),
  apiVersion: optional(undefined, s.string(), 'Version.', { jsonOnly: true }),
  metadata: optional(
    1,
    s.message('example.ScaleMeta', 'Metadata.', {
      name: optional(1, s.string(), 'Name.'),
      namespace: optional(2, s.string(), 'Namespace.'),
      uid: optional(3, s.string(), 'UID.'),
      resourceVersion: optional(4, s.string(), 'Version.'),
    }),
    'Metadata.',
  ),
  spec: optional(
    2,
    s.message('example.ScaleSpec', 'Wish.', { replicas: optional(1, s.int32(), 'Replicas.') }),
    'Wish.',
  ),
});

const orderSchema = s.message('example.Order', 'Order to a gadget.', {
  kind: optional(undefined, s.string(), 'Kind.', { jsonOnly: true }),
  apiVersion: optional(undefined, s.string(), 'Version.', { jsonOnly: true }),
  metadata: optional(
    1,
    s.message('example.OrderMeta', 'Metadata.', {
      name: optional(1, s.string(), 'Name.'),
      namespace: optional(2, s.string(), 'Namespace.'),
    }),
    'Metadata.',
  ),
  colour: required(2, s.string(), 'New colour.'),
});

/** A namespaced kind with everything: status, scale, an action, generation, selectable fields, grace periods. */
export const Gadget = defineKind({
  group: 'toys.example.com',
  version: 'v1',
  kind: 'Gadget',
  schema: s.message('example.Gadget', 'A toy.', {
    spec: embedded(2, gadgetSpec, 'Wish.'),
    status: filled(
      3,
      s.message('example.GadgetStatus', 'Report.', {
        phase: optional(1, s.string(), 'Phase.'),
        replicas: optional(2, s.int32(), 'Running.'),
      }),
      'Report.',
    ),
  }),
  strategy: {
    validate: (gadget) =>
      gadget.spec.paused && gadget.spec.replicas === 99
        ? [fieldError.forbidden('spec.paused', 'too many to pause')]
        : [],
    validateUpdate: (gadget, old) =>
      JSON.stringify(gadget.spec.selector) === JSON.stringify(old.spec.selector)
        ? []
        : [fieldError.invalid('spec.selector', gadget.spec.selector, 'field is immutable')],
    warnings: (gadget) => (gadget.spec.colour === 'green' ? ['green fades'] : []),
    gracePeriod: (gadget, requested) => requested ?? gadget.spec.graceSeconds,
  },
  selectableFields: [['spec.colour', (gadget) => gadget.spec.colour ?? '']],
  subresources: [
    { type: 'status', name: 'status' },
    {
      type: 'projection',
      name: 'scale',
      bodyKind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
      schema: scaleSchema,
      read: (gadget) => ({
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        metadata: {
          name: gadget.metadata.name,
          namespace: gadget.metadata.namespace,
          uid: gadget.metadata.uid,
          resourceVersion: gadget.metadata.resourceVersion,
        },
        spec: { replicas: gadget.spec.replicas },
      }),
      write: (gadget, scale) => {
        const replicas = scale.spec?.replicas ?? 0;
        if (replicas < 0) {
          throw statusErrors.invalid({ group: 'autoscaling', kind: 'Scale' }, gadget.metadata.name, [
            fieldError.invalid('spec.replicas', replicas, 'must be greater than or equal to 0'),
          ]);
        }
        gadget.spec.replicas = replicas;
      },
    },
    {
      type: 'action',
      name: 'paint',
      bodyKind: { group: 'toys.example.com', version: 'v1', kind: 'Order' },
      schema: orderSchema,
      run: async ({ parent, body, dryRun }) => {
        const painted = await parent.update(
          (gadget) => {
            gadget.spec.colour = body.colour;
          },
          { dryRun },
        );
        return { code: 201, object: painted };
      },
    },
    {
      type: 'action',
      name: 'assignment',
      bodyKind: { group: 'toys.example.com', version: 'v1', kind: 'Order' },
      schema: orderSchema,
      run: async ({ parent, body }) => ({
        code: 201,
        object: await parent.update((gadget) => Object.assign(gadget.spec, { colour: body.colour }), { as: 'raw' }),
      }),
    },
  ],
});

/** The kind of namespaces: cluster-scoped, held back by its own finalizers. */
export const Namespace = defineKind({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  scope: 'Cluster',
  names: { plural: 'namespaces', shortNames: ['ns'] },
  schema: s.message('example.Namespace', 'A namespace.', {
    spec: embedded(
      2,
      s.message('example.NamespaceSpec', 'Wish.', { finalizers: optional(1, s.list(s.string()), 'Holds.') }),
      'Wish.',
    ),
    status: filled(
      3,
      s.message('example.NamespaceStatus', 'Report.', { phase: optional(1, s.string(), 'Phase.') }),
      'Report.',
    ),
  }),
  strategy: {
    nameRule: 'dns1123Label',
    deleteReturnsObject: true,
    undeletable: (name) => (name === 'default' ? 'this namespace may not be deleted' : undefined),
    heldBack: (namespace) => (namespace.spec.finalizers ?? []).length > 0,
    prepareForCreate: (namespace) => {
      namespace.spec.finalizers = ['kubernetes'];
      namespace.status = { phase: 'Active' };
      namespace.metadata = {
        ...namespace.metadata,
        labels: { ...namespace.metadata?.labels, 'kubernetes.io/metadata.name': namespace.metadata?.name ?? '' },
      };
    },
    prepareForUpdate: (namespace, old) => {
      namespace.spec = old.spec;
    },
    beginDeletion: (namespace) => {
      namespace.status = { phase: 'Terminating' };
    },
  },
  subresources: [
    { type: 'status', name: 'status' },
    {
      type: 'replace',
      name: 'finalize',
      apply: (stored, object) => {
        stored.spec.finalizers = object.spec.finalizers ?? [];
      },
    },
  ],
});

/** Like Event: created by PUT, expiring, never collected. */
export const Ticket = defineKind({
  group: '',
  version: 'v1',
  kind: 'Ticket',
  schema: s.message('example.Ticket', 'A ticket.', {
    note: optional(2, s.string(), 'Note.'),
    count: always(3, s.int32(), 'Count.'),
  }),
  strategy: { allowCreateOnUpdate: true, defaultPropagation: 'none', ttlMs: () => 60_000 },
});

/** Like Lease: every write must say which version it replaces. */
export const Lock = defineKind({
  group: '',
  version: 'v1',
  kind: 'Lock',
  schema: s.message('example.Lock', 'A lock.', { holder: optional(2, s.string(), 'Holder.') }),
  strategy: { allowUnconditionalUpdate: false },
});

/** A kind with an open schema, without strategic merge patch, that cannot be deleted in bulk. */
export const Open = defineKind({
  group: 'custom.example.com',
  version: 'v1',
  kind: 'Open',
  names: { plural: 'opens' },
  scope: 'Cluster',
  schema: s.message('example.Open', 'Anything.', { spec: optional(undefined, s.raw(), 'Anything.') }),
  structural: false,
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
});

const cartSchema = (amount: 'load' | 'weight') =>
  s.message(`example.Cart.${amount}`, 'A cart.', {
    spec: embedded(
      2,
      s.message(`example.CartSpec.${amount}`, 'Wish.', { [amount]: optional(1, s.int32(), 'Amount.') }),
      'Wish.',
    ),
  });

/** The storage version of carts; deleting one orphans by default in the old version only. */
export const Cart = defineKind({
  group: 'apps.example.com',
  version: 'v1',
  kind: 'Cart',
  schema: cartSchema('load'),
});

type AnyCart = KubeObject & { spec: Record<string, number> };

function renamed(cart: KubeObject, from: string, to: string, apiVersion: string): KubeObject {
  const { [from]: amount, ...spec } = (cart as AnyCart).spec;
  return { ...cart, apiVersion, spec: { ...spec, ...(amount === undefined ? {} : { [to]: amount }) } } as KubeObject;
}

/** The same carts in their older version, where `load` is called `weight`. */
export const OldCart = defineKind({
  group: 'old.example.com',
  version: 'v1beta1',
  kind: 'Cart',
  schema: cartSchema('weight'),
  strategy: { defaultPropagation: 'Orphan' },
  storage: {
    kind: Cart,
    toStorage: (cart) => renamed(cart, 'weight', 'load', 'apps.example.com/v1'),
    fromStorage: (stored) => renamed(stored, 'load', 'weight', 'old.example.com/v1beta1') as never,
    isRelabel: () => false,
  },
});

export const kinds = [Namespace, Gadget, Ticket, Lock, Open, Cart, OldCart];
