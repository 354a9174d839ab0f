/** A cgroup could not be made, limited, joined or removed; `message` says which and why. */
export class CgroupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CgroupError';
  }
}

/** Does something to a cgroup; a failure says what it was: errors of writes name no file. @throws CgroupError */
export async function attempt<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CgroupError) throw error;
    throw new CgroupError(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
