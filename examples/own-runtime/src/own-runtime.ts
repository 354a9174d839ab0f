import { type RuntimeAdapter, RuntimeError, withDeadlines } from '@keelson/container-runtime';
import { type Infer, optional, s } from '@keelson/core';
import { ChildRuntime } from './child-runtime.ts';
import { HostImages } from './host-images.ts';
import { killLeftovers } from './leftovers.ts';

const optionsSchema = s.message('examples.ownRuntime.Options', 'Containers as child processes of the agent.', {
  environment: optional(
    undefined,
    s.map(s.string()),
    'Environment variables of every container; those of the pod take precedence.',
  ),
});

/** What an operator configures. */
export type ChildRuntimeOptions = Infer<typeof optionsSchema>;

/** The adapter: what the agent imports. */
const childAdapter: RuntimeAdapter<ChildRuntimeOptions> = {
  name: 'child',
  optionsSchema,
  async open({ environment = {} }, context) {
    if (process.platform !== 'linux') throw new RuntimeError('Unsupported', 'the child runtime requires Linux');
    const { stateDirectory, clock } = context;
    await killLeftovers(stateDirectory);
    const images = new HostImages(clock);
    const runtime = new ChildRuntime(context, images, environment);
    return withDeadlines({ runtime, images }, { clock });
  },
};

export default childAdapter;
