import { MachineError } from '@keelson/agent';
import type { ContainerEngine } from '@keelson/container-runtime';
import { openAdapter } from '../adapters/load-adapter.ts';
import { type ContextOptions, runtimeContext } from '../adapters/runtime-context.ts';
import { ensureSupervisor } from './ensure-supervisor.ts';
import { SupervisorLink } from './supervisor-link.ts';
import { endpointText, type Supervised, supervisorOptions } from './supervisor-options.ts';
import { supervisorPair } from './supervisor-pair.ts';
import { supervisorPlace } from './supervisor-place.ts';

/** Limit for the first response of a supervisor, which may be busy right after its start. */
const probeTimeoutMs = 15_000;

/**
 * Opens the OCI runtime in a supervisor process. The supervisor is started when it does not run, restarted while the
 * engine is open, and continues to run after the engine is disposed of.
 *
 * @throws MachineError when another process listens at its endpoint, or it cannot be started
 */
export async function openSupervised(environment: ContextOptions, choice: Supervised): Promise<ContainerEngine> {
  const { config, clock } = environment;
  const logger = environment.logger.child({ component: 'supervision' });
  const options = supervisorOptions(config, choice);
  const pair = await supervisorPair(supervisorPlace(options.rootDir));
  let podCidr: string | undefined;
  let engine: ContainerEngine | undefined;
  const link = new SupervisorLink({
    ensure: () => ensureSupervisor({ options, pair, clock, logger }),
    // The range of pod addresses was sent to the previous supervisor by a call, so a new supervisor does not have it.
    restarted: async () => {
      if (podCidr !== undefined) await engine?.runtime.updateConfig?.({ podCidr });
    },
    clock,
    logger,
  });
  await link.open();
  try {
    engine = await openAdapter(
      {
        adapter: 'cri',
        options: {
          endpoint: `tcp://${endpointText(options)}`,
          tls: { ...pair, peer: pair.certificate },
          probeTimeoutMs,
        },
        source: '--runtime-b-api-endpoint',
      },
      () => runtimeContext(environment, { name: 'oci' }),
    );
    // The capabilities of the runtime decide which pods are admitted, so the supervisor has to report them.
    if (engine.runtime.name !== 'oci')
      throw new MachineError('the supervisor of runtime-b does not report the capabilities of its runtime');
  } catch (error) {
    await engine?.runtime[Symbol.asyncDispose]();
    await link[Symbol.asyncDispose]();
    throw error;
  }
  const { runtime, images } = engine;
  return {
    images,
    runtime: {
      ...runtime,
      updateConfig: async (change, call) => {
        podCidr = change.podCidr ?? podCidr;
        await runtime.updateConfig?.(change, call);
      },
      [Symbol.asyncDispose]: async () => {
        await link[Symbol.asyncDispose]();
        await runtime[Symbol.asyncDispose]();
      },
    },
  };
}
