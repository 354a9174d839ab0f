export { fakeAdapter, fakeAdapter as default } from './adapter.ts';
export { behaviours, type FakeBehaviour, type FakePull, type FakeScript, type FakeStart } from './behaviour.ts';
export { createFakeRuntime } from './fake-runtime.ts';
export { FakeWorld, type FakeWorldOptions } from './fake-world.ts';
