from __future__ import annotations

import pytest


def test_gives_each_test_an_address_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        addresses = set()

        def test_one(inbox):
            addresses.add(inbox.address)

        def test_two(inbox, tempmail):
            addresses.add(inbox.address)
            addresses.add(tempmail.inbox().address)
            assert len(addresses) == 3
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_uses_a_client_with_options_of_the_project(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest
        from tempmail import Tempmail

        @pytest.fixture(scope="session")
        def tempmail():
            with Tempmail(timeout=0) as client:
                yield client
        """
    )
    pytester.makepyfile(
        """
        import pytest
        from tempmail import WaitTimeoutError

        def test_option(inbox):
            with pytest.raises(WaitTimeoutError, match="within 0 s"):
                inbox.wait()
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
