import type { AdmissionPlugin } from '@keelson/core';
import type { Tracing } from '@keelson/core/runtime';
import type { ListChunk, Store } from '@keelson/core/storage-adapter';

/** Calls of a store that are spans; a watch lasts as long as the plane. */
const calls = ['write', 'get', 'count', 'currentRevision', 'compact'] as const;

/** The store with a span for each call. @param system name of the adapter, @param name name of the store */
export function tracedStore(store: Store, tracing: Tracing, system: string, name: string): Store {
  const options = (operation: string) => ({
    name: `store ${operation}`,
    kind: 'client' as const,
    attributes: { 'db.system.name': system, 'db.operation.name': operation, 'keelson.store': name },
  });
  const traced: Record<string, unknown> = {};
  for (const call of calls) {
    const begin = options(call);
    const original = store[call].bind(store) as (...args: unknown[]) => unknown;
    traced[call] = (...args: unknown[]) => tracing.span(begin, () => original(...args));
  }
  const list = options('list');
  traced['list'] = (...args: Parameters<Store['list']>) => tracedList(tracing, list, () => store.list(...args));
  return new Proxy(store, {
    get(target, property) {
      const own = traced[property as string];
      if (own !== undefined) return own;
      const value = Reflect.get(target, property, target) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** The span lasts from the first chunk that is asked for to the end of the iteration. */
async function* tracedList(
  tracing: Tracing,
  options: Parameters<Tracing['span']>[0],
  list: () => AsyncIterable<ListChunk>,
): AsyncGenerator<ListChunk> {
  let end: () => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const ended = new Promise<void>((resolve, reject) => {
    end = resolve;
    fail = reject;
  });
  let chunks: AsyncIterable<ListChunk> | undefined;
  const span = tracing.span(options, () => {
    chunks = list();
    return ended;
  });
  span.catch(() => {});
  try {
    yield* chunks ?? [];
  } catch (error) {
    fail(error);
    throw error;
  } finally {
    end();
  }
}

/** The plugin with a span for each call. */
export function tracedPlugin(plugin: AdmissionPlugin, tracing: Tracing): AdmissionPlugin {
  const { name, resources } = plugin;
  const step = (phase: 'mutate' | 'validate') => {
    const original = plugin[phase]?.bind(plugin);
    if (original === undefined) return {};
    const options = {
      name: `admission ${name} ${phase}`,
      attributes: { 'keelson.admission.plugin': name, 'keelson.admission.phase': phase },
    };
    return { [phase]: (request: Parameters<typeof original>[0]) => tracing.span(options, () => original(request)) };
  };
  const handles = plugin.handles?.bind(plugin);
  return {
    name,
    ...(resources === undefined ? {} : { resources }),
    ...(handles === undefined ? {} : { handles }),
    ...step('mutate'),
    ...step('validate'),
  };
}
