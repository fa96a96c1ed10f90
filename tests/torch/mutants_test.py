"""Without one of its waits, events, signals or barriers a compiled file is found wrong."""

import unittest

import mutation
import plans
import support


def survives(text, orders):
    schedule = support.module_of(text)
    for order in orders:
        try:
            support.run_in_order(schedule, order)
        except Exception:  # a wrong result, a wait without an end, or what is not even a call
            return False
    return True


class Mutants(unittest.TestCase):
    def test_are_found_but_for_signals_that_a_later_one_stands_for(self):
        made, alive = 0, []
        with plans.temporary_folder() as folder:
            for name, (template, parameters) in plans.MUTATED.items():
                text = plans.read(plans.compiled(plans.make_plan(folder, name.replace(" ", "-"), template, *parameters)))
                orders = support.orders_of(support.module_of(text), ranks=(0,))
                self.assertTrue(survives(text, orders), name)
                for what, mutant in mutation.mutants(text):
                    made += 1
                    if survives(mutant, orders):
                        alive.append(f"{name}: {what}")
        print(f"{made - len(alive)} of {made} mutants found; not: {alive}")
        self.assertGreater(made, 100)
        self.assertLess(len(alive), made / 20)
        for what in alive:
            # Signals only grow: the one of the next step also tells the steps before it, later than need be.
            self.assertRegex(what, r"\.signal\(.*in the first turn$")


if __name__ == "__main__":
    unittest.main()
