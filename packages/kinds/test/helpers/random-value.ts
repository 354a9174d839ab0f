import type { Schema, SchemaNode } from '@keelson/core';

/** Typical texts of specs, and unusual ones. */
const texts = [
  '',
  'a',
  'app',
  'web',
  'Always',
  'Never',
  'None',
  'RollingUpdate',
  'Recreate',
  'OnDelete',
  'In',
  'NotIn',
  'Exists',
  'Equal',
  'TCP',
  'ClusterIP',
  'NodePort',
  'LoadBalancer',
  'ExternalName',
  'ClientIP',
  'Local',
  'NoExecute',
  'Localhost',
  'linux',
  'windows',
  'v1',
  'metadata.name',
  'limits.cpu',
  '10.0.0.1',
  '::1',
  '10.0.0.0/8',
  '25%',
  '0',
  '/x',
  '../x',
  'nginx:1',
  'Running',
  'Failed',
  'True',
  'kubernetes.io/tls',
  'kubernetes.io/dockercfg',
  '__proto__',
  'constructor',
  '\u0000',
  '%',
  'é'.repeat(40),
  '-',
  '.',
  '..',
];
const keys = ['app', 'cpu', 'memory', 'x.io/gpu', 'hugepages-2Mi', '__proto__', 'constructor', 'a b', '', '.dockercfg'];
const integers = [-2147483648, -1, 0, 0, 1, 1, 2, 80, 420, 600, 65536, 2147483647];
const quantities = ['0', '1', '500m', '1Gi', '-3', '1e3', '0.5'];

/** Small deterministic generator (mulberry32): the same seed gives the same object. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Levels of messages; schemas that contain themselves have no natural end. */
const deepest = 12;

function variants({ message }: Extract<SchemaNode, { type: 'union' }>): SchemaNode[] {
  return message.node.type === 'message' ? Object.values(message.node.fields).map(({ schema }) => schema.node) : [];
}

/** A value of the right JSON types for a schema: every optional field now there and now not, lists short. */
export function randomValue(schema: Schema<unknown>, seed: number): unknown {
  const next = generator(seed);
  const density = 0.1 + 0.5 * next();
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
  const count = () => Math.floor(next() * 3);

  const value = (node: SchemaNode, depth: number): unknown => {
    switch (node.type) {
      case 'string':
        return node.enum ? pick(node.enum) : pick(texts);
      case 'int32':
      case 'int64':
        return pick(integers);
      case 'double':
        return next();
      case 'bool':
        return next() < 0.5;
      case 'bytes':
        return pick(['', 'eA==', 'e30=']);
      case 'time':
      case 'microTime':
        return pick(['2026-01-02T12:00:00Z', '1970-01-01T00:00:00Z']);
      case 'duration':
        return '1s';
      case 'quantity':
        return pick(quantities);
      case 'intOrString':
        return next() < 0.5 ? pick(integers) : pick(texts);
      case 'raw':
        return {};
      case 'any':
        return null;
      case 'list':
        return Array.from({ length: count() }, () => value(node.items.node, depth + 1));
      case 'map': {
        const map: Record<string, unknown> = {};
        for (let i = count(); i > 0; i--) set(map, pick(keys), value(node.values.node, depth + 1));
        return map;
      }
      case 'union':
        return value(pick(variants(node)), depth + 1);
      case 'message': {
        const object: Record<string, unknown> = {};
        if (depth > deepest) return object;
        const fill = (fields: typeof node.fields) => {
          for (const [name, field] of Object.entries(fields)) {
            const inner = field.schema.node;
            if (field.inline && inner.type === 'message') fill(inner.fields);
            else if (field.whenAbsent !== 'absent' || next() < density / (1 + depth / 4))
              set(object, name, value(inner, depth + 1));
          }
        };
        fill(node.fields);
        return object;
      }
    }
  };
  return value(schema.node, 0);
}

/** Sets an own member, whatever it is called. */
function set(object: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
