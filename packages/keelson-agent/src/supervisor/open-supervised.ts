import { MachineError } from '@keelson/agent';
import type { ContainerEngine } from '@keelson/container-runtime';
import { openServed, type RuntimeSurroundings } from '../runtime/runtime-packages.ts';
import { ensureSupervisor } from './ensure-supervisor.ts';
import { SupervisorLink } from './supervisor-link.ts';
import { endpointText, type Supervised, supervisorOptions } from './supervisor-options.ts';
import { supervisorPair } from './supervisor-pair.ts';
import { supervisorPlace } from './supervisor-place.ts';

/**
 * The OCI engine in a supervisor of its own, which is started if it does not run, kept running while this engine is
 * open, and left running when it is disposed of.
 *
 * @throws MachineError when somebody else listens at its address, or it cannot be started
 */
export async function openSupervised(around: RuntimeSurroundings, choice: Supervised): Promise<ContainerEngine> {
  const { config, clock } = around;
  const logger = around.logger.child({ component: 'supervision' });
  const options = supervisorOptions(config, choice);
  const pair = await supervisorPair(supervisorPlace(options.rootDir));
  let podCidr: string | undefined;
  let engine: ContainerEngine | undefined;
  const link = new SupervisorLink({
    ensure: () => ensureSupervisor({ options, pair, clock, logger }),
    // A new one does not know what the agent has told the one before.
    restarted: async () => {
      if (podCidr !== undefined) await engine?.runtime.updateConfig?.({ podCidr });
    },
    clock,
    logger,
  });
  await link.open();
  try {
    engine = await openServed(around, {
      endpoint: `tcp://${endpointText(options)}`,
      tls: { ...pair, peer: pair.certificate },
    });
    // Its capabilities decide which pods are let in: to guess them is no way out.
    if (engine.runtime.name !== 'oci')
      throw new MachineError('the supervisor of runtime-b does not say what it can do');
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
