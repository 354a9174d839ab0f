import { defineKind } from '../../src/kind/define-kind.ts';
import { objectMetaSchema } from '../../src/kind/object-meta-schema.ts';
import { always, embedded, filled, inline, optional, required, s } from '../../src/kind/schema.ts';

export const handlerSchema = s.message('com.example.v1.Handler', 'What to do.', {
  command: optional(1, s.list(s.string()), 'Words of a command.'),
  port: optional(2, s.intOrString(), 'Port to call.'),
});

export const probeSchema = s.message('com.example.v1.Probe', 'How to see that it is well.', {
  handler: inline(1, handlerSchema),
  periodSeconds: optional(2, s.int32({ minimum: 1, maximum: 3600 }), 'Seconds between two probes.', { default: 10 }),
});

export const portSchema = s.message('com.example.v1.Port', 'A port.', {
  name: optional(1, s.string(), 'Name of the port.'),
  protocol: optional(2, s.enum('TCP', 'UDP'), 'Protocol.', { default: 'TCP' }),
  port: required(3, s.int32({ minimum: 1, maximum: 65_535 }), 'Number of the port.'),
});

export const widgetSpecSchema = s.message('com.example.v1.WidgetSpec', 'What is wanted.', {
  size: always(1, s.int32(), 'How big.'),
  color: optional(2, s.string({ pattern: '^[a-z]+$', minLength: 2, maxLength: 8 }), 'Colour.'),
  ports: optional(3, s.listByKey(portSchema, 'port', { maxItems: 3 }), 'Ports.'),
  limits: optional(4, s.map(s.quantity()), 'Most of each.'),
  probe: optional(5, probeSchema, 'Check.'),
  every: optional(6, s.duration(), 'How often.'),
  since: optional(7, s.time(), 'From when.'),
  exact: optional(8, s.microTime(), 'From when exactly.'),
  key: optional(9, s.bytes(), 'Secret.'),
  weight: optional(10, s.double(), 'Weight.'),
  big: optional(11, s.int64(), 'Large number.'),
  paused: optional(12, s.bool(), 'Not now.'),
  mode: optional(13, s.enum('Fast', 'Slow'), 'Mode.', { default: 'Slow' }),
  raw: optional(14, s.raw(), 'Anything with fields.'),
  parts: optional(15, s.map(portSchema), 'Ports by name.'),
  tags: optional(16, s.set(s.string()), 'Words.'),
  strategy: optional(17, s.message('com.example.v1.Strategy', 'How to change.', {}), 'Strategy.', {
    patchStrategy: 'retainKeys',
  }),
  template: optional(
    18,
    s.message('com.example.v1.Template', 'Form.', { metadata: filled(1, objectMetaSchema, 'Metadata.') }),
    'Form.',
  ),
});

export const widgetSchema = s.message('com.example.v1.Widget', 'A thing.', {
  spec: embedded(2, widgetSpecSchema, 'What is wanted.'),
  status: optional(
    3,
    s.message('com.example.v1.WidgetStatus', 'What is.', { ready: always(1, s.bool(), 'Is it?') }),
    'What is.',
  ),
});

export const Widget = defineKind({
  group: 'example.com',
  version: 'v1',
  kind: 'Widget',
  schema: widgetSchema,
  names: { shortNames: ['wd'], categories: ['all'] },
  subresources: [{ type: 'status', name: 'status' }],
  selectableFields: [['spec.color', (widget) => widget.spec.color ?? '']],
});
