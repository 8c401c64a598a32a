/** The part of `@michaelhomer/jqjs` that the command uses; the package has no declarations. */
declare module "@michaelhomer/jqjs" {
  /** Compiles an expression, or throws a message. The filter yields results, and throws a message if it does not fit its input. */
  export const compile: (expression: string) => (input: unknown) => Iterable<unknown>
}
