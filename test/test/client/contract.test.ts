import { createHttpClient, createInProcessClient } from '@keelson/client';
import {
  type ClientHarness,
  type ClientRequirement,
  clientSuiteKinds,
  type OpenedClient,
  registerClientConformance,
} from '@keelson/conformance';
import { systemClock } from '@keelson/core/runtime';
import { MemoryStore } from '@keelson/storage-memory';
import test from 'ava';
import { type ControlPlane, createControlPlane } from 'keelson';

interface Opened {
  readonly plane: ControlPlane;
  readonly store: MemoryStore;
}

async function openPlane(): Promise<Opened> {
  const store = new MemoryStore({ clock: systemClock });
  return { plane: await createControlPlane({ storage: store, kinds: clientSuiteKinds, controllers: false }), store };
}

function harness(
  name: string,
  offers: readonly ClientRequirement[],
  connect: (plane: ControlPlane, onWarning: (text: string) => void) => Promise<Connected>,
): ClientHarness {
  return {
    name,
    offers: ['warnings', 'forgetHistory', ...offers],
    async open(): Promise<OpenedClient> {
      const { plane, store } = await openPlane();
      const warnings: string[] = [];
      const { client, close } = await connect(plane, (text) => warnings.push(text));
      return {
        client,
        namespaces: ['default', 'kube-public'],
        warnings,
        forgetHistory: async () => store.compact(await store.currentRevision()),
        dispose: async () => {
          close();
          await plane.close();
        },
      };
    },
  };
}

interface Connected {
  readonly client: OpenedClient['client'];
  close(): void;
}

// Serial: cases have time limits.
const serial = Object.assign(test.serial, { skip: test.skip });

registerClientConformance(
  serial,
  harness('in process', ['unknownFields'], async ({ registry }, onWarning) => ({
    client: createInProcessClient(registry, { onWarning }),
    close: () => {},
  })),
);

for (const encoding of ['json', 'protobuf'] as const) {
  const offers = encoding === 'json' ? (['unknownFields'] as const) : [];
  registerClientConformance(
    serial,
    harness(`HTTP, ${encoding}`, offers, async (plane, onWarning) => {
      const client = createHttpClient({ server: (await plane.listen()).url, onWarning, encoding });
      return { client, close: () => client.close() };
    }),
  );
}
